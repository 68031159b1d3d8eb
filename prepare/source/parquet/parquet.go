// Package parquet reads Parquet files, such as the datasets of the Hugging Face hub.
//
// A leaf of the schema, or a struct of bytes and path (an image of the hub), is a column. Columns are read in two ways:
// block by block, where a worker decodes the pages of a whole row group (block.go), which is how preprocess goes
// through a file; and by the page index, where the pages of single rows are decoded (indexed.go), which is how a loader
// reads raw rows in any order. Pages are decoded by github.com/parquet-go/parquet-go, which panics on some corrupt
// files; guardParquet turns that into an error, as files are untrusted.
package parquet

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// reader is a source of rows of Parquet files. A struct of bytes and path, as the
// Hugging Face hub stores images, is one column.
type reader struct {
	root    *vfs.Root
	path    string
	names   []string // of the files
	files   []vfs.File
	parts   []*parquet.File
	columns []*leafColumn
	paths   []column.PathField // of images
	runs    map[int]bool       // leaves whose booleans are encoded in runs, in any file
	info    source.Info
	splits  source.FileSplits
}

// Info implements Source.
func (s *reader) Info() source.Info { return s.info }

// Close implements Source.
func (s *reader) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return errors.Join(err, s.root.Close())
}

// Files implements source.Filed.
func (s *reader) Files() (paths []string, samples []int64) {
	for _, p := range s.parts {
		samples = append(samples, p.NumRows())
	}
	return s.names, samples
}

// Samples implements Source.
func (s *reader) Samples() iter.Seq2[source.Sample, error] { return s.From(0) }

// From implements Spanned.
func (s *reader) From(n int64) iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		i := n
		for row, err := range s.rowsFrom(n) {
			if err != nil {
				yield(source.Sample{}, fmt.Errorf("source %s: row %d: %w", s.path, i, err))
				return
			}
			sample := s.place(i)
			sample.Data = column.WithFiles(s.data(row), s.paths, s.root, sample.File)
			if !yield(sample, nil) {
				return
			}
			i++
		}
	}
}

// place returns a row without its values. Its name is its number, after the name of its file if there are several.
func (s *reader) place(i int64) (row source.Sample) {
	for k, p := range s.parts {
		if n := p.NumRows(); i >= n {
			i -= n
			continue
		}
		row.Name, row.File, row.Split = strconv.FormatInt(i, 10), s.names[k], s.splits.Of[s.names[k]]
		if len(s.parts) > 1 {
			row.Name = filepath.ToSlash(s.files[k].Name()) + ":" + row.Name
		}
		break
	}
	return row
}

// data copies the values of a row.
func (s *reader) data(row [][]parquet.Value) source.Data {
	values := make(source.Tuple, len(s.columns))
	for i, c := range s.columns {
		err := guardParquet(func() (err error) { values[i], err = c.value(row); return err })
		if err != nil && c.parts == nil {
			err = fmt.Errorf("column %s: %w", c.name, err)
		}
		if err != nil {
			return source.Loaded{Tuple: values, Err: err}
		}
	}
	return values
}
