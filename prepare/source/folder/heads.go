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

// headBytes is the number of bytes that decide whether a file is an image.
const headBytes = 16

// heads has, by path, the first bytes of images and arrays in a bucket whose names do not say so. It is nil for a
// local folder, where files are read one by one while it is listed.
type heads map[string][]byte

// readHeads reads the first bytes of all files in a bucket whose names do not say that they are images, many at a
// time, as each read is a request. It returns nil if a folder cannot be listed; scan then reports the error. Files
// named like an image next to them (a.txt and a.jpg) are usually annotations: the first few are read, and the
// others only if all of these are images.
func readHeads(ctx context.Context, root *vfs.Root, dir string, few int, isImage func(head []byte) bool) heads {
	if !vfs.Mounted(dir) {
		return nil
	}
	next, others, err := unnamed(ctx, root, dir)
	if err != nil {
		return nil
	}
	h := make(heads)
	// Files that are not named like an image next to them may be images without an extension, so all are read.
	h.look(ctx, root, others, isImage)
	few = min(few, len(next))
	if images := h.look(ctx, root, next[:few], isImage); images == few {
		h.look(ctx, root, next[few:], isImage)
	}
	return h
}

// unnamed returns the paths of all files whose names do not say that they are images: next are files named like an
// image next to them, and others the rest.
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

// look reads the first bytes of files, keeps the bytes of images and arrays, and returns the number of images.
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

// of returns the first bytes of a file. In a bucket it returns nil for files that are neither images nor arrays.
func (h heads) of(root *vfs.Root, path string) []byte {
	if h != nil {
		return h[path]
	}
	return source.ReadHead(root, path, headBytes)
}

func isArray(head []byte) bool { return strings.HasPrefix(string(head), npy.Magic) }
