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

// eachFile calls f with each visible file in a folder and below it: its path, and its path relative to the folder.
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

// splitOf returns the top folder of a name if it is the name of a split, otherwise "".
func splitOf(name string) string {
	if first, _, deeper := strings.Cut(name, "/"); deeper && source.IsSplit(first) {
		return first
	}
	return ""
}

// sortSplits sorts images by split and returns the splits. The set has splits only if every image is in a split and
// there are at least two splits; otherwise it clears the splits of the images.
func sortSplits(images []annotatedImage, found map[string]bool) []string {
	// An image outside of all splits could not be selected by a split, and would never be loaded.
	if len(found) < 2 || found[""] {
		for i := range images {
			images[i].Split = ""
		}
		return nil
	}
	slices.SortStableFunc(images, func(a, b annotatedImage) int { return source.CompareSplits(a.Split, b.Split) })
	return slices.SortedFunc(maps.Keys(found), source.CompareSplits)
}

// readFile reads a file of an image, in the memory of buf if it fits.
func readFile(root *vfs.Root, path string, buf []byte) ([]byte, error) {
	b, err := source.File{Root: root, Path: path}.Bytes(buf)
	return b, inFile(path, err)
}

// inFile adds the path of a file to an error.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("file %s: %w", filepath.ToSlash(path), err)
}
