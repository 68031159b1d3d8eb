package labels

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// eachFile calls f with the files in a folder and below it that are not hidden, by their paths and by their paths in
// the folder.
func eachFile(ctx context.Context, root *vfs.Root, dir string, f func(path, rel string) error) error {
	return root.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return source.WithoutPath(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.IsDir() || source.IsHidden(e.Name()):
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return f(path, rel)
	})
}

// splitOf returns the folder at the top that an image is in, if it has the name of a split; "" otherwise.
func splitOf(name string) string {
	if first, _, deeper := strings.Cut(name, "/"); deeper && source.IsSplit(first) {
		return first
	}
	return ""
}

// sortSplits sorts images by the splits that were found, and returns these. Unless there are two or more and all images
// are in one, there are none.
func sortSplits(images []annotatedImage, found map[string]bool) []string {
	if len(found) < 2 || found[""] {
		for i := range images {
			images[i].Split = ""
		}
		return nil
	}
	slices.SortStableFunc(images, func(a, b annotatedImage) int { return source.CompareSplits(a.Split, b.Split) })
	return slices.SortedFunc(maps.Keys(found), source.CompareSplits)
}

// readFile reads a file that belongs to an image, in the memory of buf if it fits.
func readFile(root *vfs.Root, path string, buf []byte) ([]byte, error) {
	b, err := source.File{Root: root, Path: path}.Bytes(buf)
	return b, inFile(path, err)
}

// inFile says in which file an error came up.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("file %s: %w", filepath.ToSlash(path), err)
}
