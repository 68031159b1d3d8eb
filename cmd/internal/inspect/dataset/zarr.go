package dataset

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/prepare/source/column"
)

// openZarr opens the Zarr hierarchy in a folder or a zip file.
func openZarr(path string) (*zarr.Group, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return zarr.Open(vfs.Folder(path))
	}
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := zarr.Zip(f, info.Size())
	if err != nil {
		return nil, err
	}
	return zarr.Open(files)
}

// isZarr reports whether a path has a Zarr hierarchy with arrays.
func isZarr(path string) bool {
	g, err := openZarr(path)
	return err == nil && len(g.Arrays) > 0
}

// zarrArrays is the error of a Zarr hierarchy that is not a dataset: a list of its arrays, and the
// command that makes a dataset of some. The records of a dataset have one number, so the command
// takes the arrays of one length, namely of the length whose arrays have most bytes together.
func zarrArrays(path string) error {
	g, err := openZarr(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var lines, names []string
	sizes := make(map[int64]int64) // bytes of the arrays of a length
	var best int64
	for _, a := range g.Arrays {
		name := cmp.Or(a.Path, ".")
		spec, err := a.Spec()
		if err != nil {
			lines = append(lines, fmt.Sprintf("  %s: %v", shell.Line(name), err))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s: %d records of %v %v, %s", shell.Line(name), a.Records(), spec.DType,
			spec.Shape, a.How()))
		sizes[a.Records()] += a.Records() * int64(spec.RecordBytes())
		if sizes[a.Records()] > sizes[best] || best == 0 {
			best = a.Records()
		}
	}
	for _, a := range g.Arrays {
		if a.Err == nil && a.Records() == best {
			names = append(names, a.Path)
		}
	}
	made := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".h5"
	line := shell.Penstock("preprocess", path, made)
	if len(names) < len(g.Arrays) && line != "" {
		line = column.FieldsCommand(line, names)
	}
	return fmt.Errorf("%s: Zarr, version %d, with %d arrays; make a dataset: %s\n%s", path, g.Format, len(g.Arrays),
		cmp.Or(line, shell.Penstock("preprocess SOURCE DEST")), strings.Join(lines, "\n"))
}
