package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/hdf5"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/store"
)

// OpenHDF5 opens any HDF5 file. A dataset of this module comes with all that its manifest knows. In a file of
// another program, records are units (groups) if there is a declaration or the groups are alike, and otherwise
// every HDF5 dataset becomes a field; see package hdf5.
func OpenHDF5(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	name, generation, _ := layout.SplitGeneration(path)
	// The generation is part of the path's notation, and not of the file's name.
	f, size, err := source.OpenSized(ctx, root, name)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	file, err := layout.OpenHDF5File(name, f, size, generation)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	// A dataset of this module is read by path, generation and checksums, so this open file is not needed.
	if d, err := ownHDF5(name, file); d != nil || err != nil {
		f.Close()
		if err != nil {
			return nil, err
		}
		return newDataset(root, d, opts, selection)
	}
	other := hdf5.New(ctx, root, path, f, file)
	if s, err := openUnits(path, other, opts, selection); s != nil || err != nil {
		return s, err
	}
	columns, bad, err := other.Columns(selection)
	if err != nil {
		other.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	s, err := array.New("hdf5", path, source.BaseName(path), columns, other)
	if noting, ok := s.(interface{ Note(hint string) }); ok {
		for _, hint := range other.Hints {
			noting.Note(hint)
		}
		if len(bad) > 0 && len(selection) == 0 {
			noting.Note(bad.Hint())
		}
	}
	return s, err
}

// openUnits opens a file whose records are groups, or rows of groups, as opts declares or the file suggests. It
// returns nil without an error for any other file, and owns the file in all other cases.
func openUnits(path string, file *hdf5.File, opts source.Options, selection []column.Selection) (source.Source, error) {
	records, units, hint, err := unit.Find(file, opts.Records, selection)
	if err == nil && records == nil {
		return nil, nil
	}
	var columns *unit.Columns
	if err == nil {
		columns, err = unit.NewColumns(units, records, selection)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", path, err), file.Close())
	}
	lists := columns.Lists(file.Lists(records, len(units)))
	for _, b := range lists.Broken {
		if b.Missing != nil { // an empty text array may be anything
			columns.Hints = append(columns.Hints, fmt.Sprintf("no split: %v; correct the list to have it as one", b))
		}
	}
	splits, err := lists.One(opts.Split)
	if opts.Divide && err == nil {
		var hints []string
		splits, hints, err = lists.Several(opts.Lists)
		columns.Hints = append(columns.Hints, hints...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", path, err), columns.Close(), file.Close())
	}
	return OfUnits("hdf5", path, columns, records, hint, lists, splits, file)
}

// OfUnits returns the source of units. hint is a sentence for people, and splits are the splits that lists give, which
// count more than the splits by the names of units. The source owns the files, also if there is an error.
func OfUnits(kind, path string, columns *unit.Columns, records *unit.Records, hint string, lists unit.Lists,
	splits []store.Split, files ...io.Closer) (source.Source, error) {
	s, err := array.NewNamed(kind, path, source.BaseName(path), columns.List, columns.Name,
		append([]io.Closer{columns}, files...)...)
	if err != nil {
		return nil, err
	}
	if of, ok := s.(interface {
		InUnits(records string, lists []store.Split, broken []source.BrokenList, coordinates map[string]source.Coordinates)
		Note(hint string)
	}); ok {
		of.InUnits(records.String(), lists.All, lists.Broken, columns.Coordinates)
		for _, text := range append(columns.Hints, hint) {
			if text != "" {
				of.Note(text)
			}
		}
	}
	if splits == nil {
		splits = columns.Splits()
	}
	if splits != nil {
		s = source.NewSplitSource(s, splits)
	}
	return s, nil
}

// ownHDF5 returns the dataset of this module in a file, nil if the file has none. A view (a file of virtual
// datasets) is an error that names the viewed dataset.
func ownHDF5(path string, file *meta.File) (*store.Dataset, error) {
	opened, err := layout.OpenHDF5(path, file, nil, layout.Refused)
	if errors.Is(err, store.ErrView) {
		return nil, err
	}
	if d, _ := opened.(*store.Dataset); err == nil && d.Manifest != nil {
		return d, nil
	}
	return nil, nil
}

// Closer is a function as an io.Closer.
type Closer func()

// Close implements io.Closer.
func (c Closer) Close() error { c(); return nil }

// Cursor returns a cursor over the first count records of a reader. It reads whole rows of chunks, so that each
// chunk is decompressed once.
func Cursor(ctx context.Context, r *chunk.Reader, count int64) array.Cursor {
	return array.Fixed{Size: r.RecordBytes()}.Cursor(hdf5.NewStream(ctx, r, r.ChunkRecords(), 0), count)
}
