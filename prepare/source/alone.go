package source

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// filesAtTop has the kinds of folders whose source is the files directly in the folder, and the endings of these
// files.
var filesAtTop = map[string][]string{"npy": {".npy"}, "npz": {".npz"}, "safetensors": {".safetensors"},
	"hdf5":    {".h5", ".hdf5", ".h5ad"},
	"parquet": {".parquet"},
	"tar":     {".tar", ".tar.gz", ".tar.zst", ".tar.bz2", ".tgz"}, "zip": {".zip"}}

// Alone returns an error if a folder that was detected as kind also holds data that this kind would leave out:
// images, files of other kinds, or any data in subfolders. A part of the user's data would otherwise be left out
// silently.
func Alone(ctx context.Context, root *vfs.Root, path, kind string) error {
	endings, ok := filesAtTop[kind]
	if !ok {
		return nil
	}
	files, err := Files(path)
	if err != nil {
		return err
	}
	if !IsDir(root, files[0]) {
		return nil
	}
	if slices.Contains(Partitioned, kind) && len(root.Glob(files[0], "*"+endings[0])) == 0 {
		return nil // the files are in partitions
	}
	other, err := otherData(ctx, root, files[0], endings)
	if err != nil || other == "" {
		return err
	}
	return fmt.Errorf("source %s: the folder holds %s files, and also %s, which would be left out; --from %s takes the "+
		"%s files alone, --from imagefolder the images; or give one of the files, or a glob",
		path, endings[0], other, kind, endings[0])
}

// otherData returns the path of the first data file in a folder or its subfolders that the kind would leave out; ""
// if there is no such file. Files with one of the endings are part of the source at the top, but are left out in
// subfolders.
func otherData(ctx context.Context, root *vfs.Root, folder string, endings []string) (string, error) {
	entries, err := ReadDir(ctx, root, folder)
	if err != nil {
		return "", fmt.Errorf("source %s: %w", folder, WithoutPath(err))
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		switch {
		case IsHidden(name):
		case e.IsDir() && endings != nil:
			found, err := otherData(ctx, root, filepath.Join(folder, e.Name()), nil)
			if err != nil || found != "" {
				return filepath.ToSlash(filepath.Join(e.Name(), found)), err
			}
		case IsData(name) && !endsIn(name, endings):
			return e.Name(), nil
		}
	}
	return "", nil
}

// IsData reports whether a lower-case file name suggests that the file has samples.
func IsData(name string) bool {
	if IsImageName(name) || ByExtension[filepath.Ext(name)] != "" || strings.HasSuffix(name, ".npz") {
		return true
	}
	for _, endings := range filesAtTop {
		if endsIn(name, endings) {
			return true
		}
	}
	return false
}

func endsIn(name string, endings []string) bool {
	return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) })
}
