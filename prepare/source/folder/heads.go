package folder

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// headBytes is how much of a file is looked at for an image.
const headBytes = 16

// heads are the first bytes of images and arrays in a bucket whose names promise none, by path; nil on this machine.
type heads map[string][]byte

// readHeads reads all files in a bucket whose names promise no image, many at a time: each costs a request. It returns
// nil if a folder cannot be listed, which scan reports. Of files next to an image of their name it reads a few first:
// if one is not an image itself, it leaves out the others.
func readHeads(ctx context.Context, root *vfs.Root, dir string, few int, isImage func(head []byte) bool) heads {
	if !vfs.Mounted(dir) {
		return nil
	}
	next, others, err := unnamed(ctx, root, dir)
	if err != nil {
		return nil
	}
	h := make(heads)
	h.look(ctx, root, others, isImage)
	few = min(few, len(next))
	if images := h.look(ctx, root, next[:few], isImage); images == few {
		h.look(ctx, root, next[few:], isImage)
	}
	return h
}

// unnamed returns the paths of all files whose names promise no image: those next to an image of their name, and
// others.
func unnamed(ctx context.Context, root *vfs.Root, dir string) (next, others []string, err error) {
	images, found := make(map[string]bool), []string{}
	dir = filepath.Clean(dir)
	err = root.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		path = filepath.Clean(filepath.FromSlash(path))
		switch {
		case err != nil:
			return err
		case path == dir:
		case source.IsHidden(e.Name()) && e.IsDir():
			return fs.SkipDir
		case source.IsHidden(e.Name()) || !e.Type().IsRegular():
		case source.IsImageName(e.Name()):
			images[path], images[stem(path)] = true, true
		default:
			found = append(found, path)
		}
		return ctx.Err()
	})
	for _, path := range found {
		if images[stem(path)] && filepath.Ext(path) != "" {
			next = append(next, path)
		} else {
			others = append(others, path)
		}
	}
	return next, others, err
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// look reads files, adds images and arrays, and returns how many are images.
func (h heads) look(ctx context.Context, root *vfs.Root, paths []string, isImage func([]byte) bool) (images int) {
	list := make([][]byte, len(paths))
	source.Overlap(ctx, len(paths), func(i int) { list[i] = source.ReadHead(root, paths[i], headBytes) })
	for i, head := range list {
		image := isImage(head)
		if image || isArray(head) {
			h[paths[i]] = head
		}
		if image {
			images++
		}
	}
	return images
}

// of returns the first bytes of a file of the folder; in a bucket, only of images and arrays.
func (h heads) of(root *vfs.Root, path string) []byte {
	if h != nil {
		return h[path]
	}
	return source.ReadHead(root, path, headBytes)
}

func isArray(head []byte) bool { return strings.HasPrefix(string(head), npy.Magic) }
