// Package zarr reads sources that are arrays of Zarr version 2 or 3, in folders, zip files and buckets.
//
// Arrays of one length become fields, with records along the first axis. Where groups are records or hold rows of
// records, package unit makes the fields, and single-cell stores of anndata are read by package cells; a hierarchy
// implements the interfaces of both. internal/zarr parses metadata and chunks; this package chooses arrays, and
// says why others cannot become fields. A store that penstock wrote has a manifest, and is opened by package
// dataset with its checksums.
package zarr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/dataset"
	"github.com/penstock/penstock/prepare/source/unit"
)

// Open opens a Zarr store: every array of numbers with records is a field. A store that penstock wrote has the
// fields of its manifest.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	if isDataset(root, path) {
		files := func(path string) zarr.Files { return folder{ctx, root, path} }
		return dataset.OpenZarr(root, path, files, opts, selection)
	}
	f, err := OpenFile(ctx, root, path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	records, units, hint, err := unit.Find(f, opts.Records, selection)
	if units != nil && err == nil {
		var columns *unit.Columns
		if columns, err = unit.NewColumns(units, records, selection); err == nil {
			return dataset.OfUnits("zarr", path, columns, records, hint, unit.Lists{}, nil, f, root)
		}
	}
	var list []array.Column
	var bad array.Rejections
	if err == nil {
		list, bad, err = f.whole.columns(selection)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", path, err), f.Close())
	}
	s, err := array.New("zarr", path, source.BaseName(path), list, f, root)
	if noting, ok := s.(interface{ Note(hint string) }); ok && len(bad) > 0 && len(selection) == 0 {
		noting.Note(bad.Hint())
	}
	return s, err
}

// IsRaw reports whether a path is raw samples, which package mmapds does not open: cells of anndata, or a folder of
// stores.
func IsRaw(path string) bool {
	root, err := source.OpenRoot(path, source.Options{})
	if err != nil {
		return false
	}
	defer root.Close()
	if source.IsDir(root, path) && !source.IsZarr(root, path) {
		return true
	}
	files, closer, err := Files(context.Background(), root, path)
	if err != nil {
		return false
	}
	defer closer.Close()
	return zarr.AreCells(files)
}

// isDataset reports whether penstock wrote the store in a folder.
func isDataset(root *vfs.Root, path string) bool {
	name, _, _ := source.SplitGeneration(path)
	_, err := root.Stat(filepath.Join(name, filepath.FromSlash(layout.ZarrManifest)))
	return err == nil
}

// columns returns the arrays that the selection names, and the arrays that cannot become fields. Without a selection it
// returns all arrays that have records, and an array that has records and cannot be read is an error: users would find
// out in training that a field is missing.
func (h *hierarchy) columns(selection []column.Selection) (list []array.Column, bad array.Rejections, err error) {
	var missed array.Rejections
	for _, a := range h.group.Arrays {
		c, err := newColumn(h.ctx, h.source, a, h.pool)
		if err != nil {
			r := array.Rejection{Name: origin(h.source, a), Err: fmt.Errorf("%w%s", err, Remedy(h.source, err))}
			// A single value is no field in any case, so it is no loss.
			if bad = append(bad, r); a.Scalar() {
				continue
			}
			missed = append(missed, r)
			continue
		}
		list = append(list, c)
	}
	if err := bad.Selected(selection); err != nil {
		return nil, nil, err
	}
	if len(selection) == 0 && len(missed) > 0 {
		return nil, nil, missed.All(list)
	}
	if len(list) == 0 && len(bad) > 0 {
		return nil, nil, bad.All(nil)
	}
	list, err = array.Select(list, selection)
	return list, bad, err
}

// origin returns the name of an array for people: its path, or the name of the store if the store is a single
// array.
func origin(path string, a *zarr.Array) string {
	if a.Path != "" {
		return a.Path
	}
	name := source.BaseName(path)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// newColumn returns the column of an array. The readers of all columns share pool, whose goroutines decompress
// chunks.
func newColumn(ctx context.Context, path string, a *zarr.Array, pool *chunk.Pool) (array.Column, error) {
	spec, err := a.Spec()
	if err != nil {
		return array.Column{}, err
	}
	name := origin(path, a)
	c := array.Column{Field: source.NumberField(layout.FieldName(name), spec.DType, spec.Shape...), Count: a.Records()}
	c.Field.Origin = name
	c.Field.Dims, c.Field.Meaning = layout.NamedAxes(a.Dimensions, spec.Shape), a.Meaning()
	if c.Field.Spec.Validate() != nil {
		return array.Column{}, fmt.Errorf("shape %v has no records of numbers", a.Shape)
	}
	r, err := a.Reader(chunk.Options{Pool: pool})
	if err != nil {
		return array.Column{}, err
	}
	c.Open = func() (array.Cursor, error) { return dataset.Cursor(ctx, r, c.Count), nil }
	c.At = func(i int64, buf []byte) ([]byte, error) {
		n := len(buf)
		buf = append(buf, make([]byte, r.RecordBytes())...)
		return buf, r.Records(ctx, buf[n:], i, i+1)
	}
	c.Rows = func(a, b int64, dst []byte) error { return r.Records(ctx, dst, a, b) }
	return c, nil
}

// Remedy returns how to rewrite an array that is not supported, as the end of a message; "" for other errors.
func Remedy(path string, err error) string {
	word, ok := shell.Quote(path)
	if !errors.Is(err, meta.ErrUnsupported) || !ok {
		return ""
	}
	return "; if it holds numbers, write it without that: python3 -c 'import sys, zarr; zarr.create_array(\"NEW.zarr\", " +
		"data=zarr.open_array(sys.argv[1])[...])' " + word
}

// Files returns the files of a store in a folder or a zip file, and the closer of the zip file. Reads end with ctx.
func Files(ctx context.Context, root *vfs.Root, path string) (zarr.Files, io.Closer, error) {
	info, err := root.Stat(path)
	if err != nil {
		return nil, nil, source.WithoutPath(err)
	}
	if info.IsDir() {
		return folder{ctx, root, path}, dataset.Closer(func() {}), nil
	}
	f, err := source.OpenUntil(ctx, root, path)
	if err != nil {
		return nil, nil, source.WithoutPath(err)
	}
	files, err := zarr.Zip(f, info.Size())
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return files, f, nil
}

// folder is a store in a folder, local or in a mounted bucket.
type folder struct {
	ctx  context.Context
	root *vfs.Root
	path string
}

// Open implements zarr.Files.
func (f folder) Open(name string) (fs.File, error) {
	return source.OpenUntil(f.ctx, f.root, filepath.Join(f.path, filepath.FromSlash(name)))
}

// ReadDir implements zarr.Files.
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	return source.ReadDir(f.ctx, f.root, filepath.Join(f.path, filepath.FromSlash(name)))
}
