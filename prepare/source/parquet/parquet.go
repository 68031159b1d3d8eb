// Package parquet reads Parquet files, such as the datasets of the Hugging Face hub.
// https://parquet.apache.org/docs/file-format/
//
// A column of the source (leafColumn) is a leaf of the schema, or a struct of bytes and path, in which the hub
// stores an image. open.go opens the files and decides the fields; where the schema leaves a type open (lengths of
// lists, class names, bytes that may be images), it looks at the first rows or scans the column.
//
// Rows are read in three ways. Samples decodes row by row (rows.go), and works for every column. Blocks decodes the
// pages of a row group column by column into blocks of fixed-size rows (block.go), which is how preprocess reads
// tables of numbers. With Options.Places, indexed reads the pages of single rows by the page index (indexed.go),
// which is how a loader reads raw rows in any order.
//
// Pages are decoded by github.com/parquet-go/parquet-go. It panics on some corrupt files, allocates what a file
// claims, and decodes LZ4 and run-length booleans wrongly. Files are untrusted, so guardParquet turns panics into
// errors, and check.go refuses the rest before it is read.
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

// reader is the source of the rows of Parquet files.
type reader struct {
	root    *vfs.Root
	path    string
	names   []string // of the files
	files   []vfs.File
	parts   []*part
	columns []*leafColumn
	paths   []column.PathField // fields that are paths of images
	runs    map[int]bool       // by leaf: booleans are encoded in runs, in any of the files
	info    source.Info
	splits  source.FileSplits
}

// part is one of the files.
type part struct {
	*parquet.File

	// leaves has, by number of a leaf in the first file, the number of the leaf of the same path and type in this file,
	// whose columns may be in another order; -1 if this file has no such leaf.
	leaves []int
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

// From implements source.Seekable.
func (s *reader) From(n int64) iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		i := n
		for row, err := range s.rowsFrom(n) {
			if err != nil {
				yield(source.Sample{}, fmt.Errorf("source %s: row %d: %w", s.path, i, err))
				return
			}
			// A row has no number of its own in the library, so files are counted through.
			sample := s.place(i)
			sample.Data = column.WithFiles(s.data(row), s.paths, s.root, sample.File)
			if !yield(sample, nil) {
				return
			}
			i++
		}
	}
}

// place returns sample i without its values. Its name is the number of the row, after the name of the file if there
// are several files.
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

// data copies the values of a row, which is only valid until the next. A value that is bad ends up as the error of
// the Data, together with the values before it.
func (s *reader) data(row [][]parquet.Value) source.Data {
	values := make(source.Tuple, len(s.columns))
	for i, c := range s.columns {
		// Values of a corrupt page can make the library panic even after the page was read.
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
