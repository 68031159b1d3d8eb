// Package parquet reads Parquet files, those of the Hugging Face hub among them.
package parquet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// reader is a source of rows of Parquet files. A struct of bytes and path, as the
// Hugging Face hub stores images, is one column.
type reader struct {
	path    string
	names   []string // of the files
	files   []vfs.File
	parts   []*parquet.File
	columns []*leafColumn
	runs    map[int]bool // leaves whose booleans are encoded in runs, in any file
	info    source.Info
	splits  source.FileSplits
}

func Open(ctx context.Context, path string, opts source.Options, selection []column.Selection) (source.Source, error) {
	names, err := source.FilesIn(path, "*.parquet")
	if err != nil {
		return nil, err
	}
	s := &reader{path: path, names: names, splits: source.SplitsOfFiles(names),
		info: source.Info{Kind: "parquet", Name: source.BaseName(path), Unit: "rows"}}
	s.info.Splits = s.splits.Names
	err = guardParquet(func() error { return s.open(ctx, names, opts, selection) })
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return s, nil
}

func (s *reader) open(ctx context.Context, names []string, opts source.Options, selection []column.Selection) error {
	for _, name := range names {
		if err := s.add(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
		}
	}
	if s.info.Count == 0 {
		return errors.New("holds no rows")
	}
	columns, err := columnsOf(s.parts[0])
	if err != nil {
		return err
	}
	if s.columns, err = selectParquet(columns, selection); err != nil {
		return err
	}
	if err := s.look(opts); err != nil {
		return err
	}
	if err := s.scan(ctx, opts.Seen); err != nil {
		return err
	}
	if err := s.decide(); err != nil {
		return err
	}
	named := make(map[string]string, len(s.columns))
	for _, c := range s.columns {
		if other, twice := named[c.field.Name]; twice {
			return fmt.Errorf("columns %s and %s would both be the field %q; name them with --fields", other, c.name,
				c.field.Name)
		}
		named[c.field.Name] = c.name
		s.info.Fields = append(s.info.Fields, c.field)
	}
	return nil
}

// scan goes through the columns whose type or shape is not known yet.
func (s *reader) scan(ctx context.Context, seen func(n int64)) error {
	for _, c := range s.columns {
		scan := newColumnScan(c)
		if scan == nil {
			continue
		}
		for i, p := range s.parts {
			if err := scan.file(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(s.files[i].Name()), err)
			}
			if s.info.Count >= source.QuickScan {
				seen(p.NumRows())
			}
		}
		seen = func(int64) {} // the other columns are of the same rows
		if err := scan.finish(); err != nil {
			return err
		}
	}
	return nil
}

// decide finds the fields. The error of columns that make none says how to do without them.
func (s *reader) decide() error {
	var errs []error
	var good []string
	for _, c := range s.columns {
		err := c.decide()
		if s.inRuns(c) {
			err = errRuns
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", c.name, err))
		} else {
			good = append(good, c.name)
		}
	}
	return column.Undecided(errs, good, s.columns[0].selection.Column != "")
}

// inRuns reports whether a column has booleans that are encoded in runs.
func (s *reader) inRuns(c *leafColumn) bool {
	if c.parts == nil {
		return s.runs[c.leaf.ColumnIndex]
	}
	return slices.ContainsFunc(c.parts, s.inRuns)
}

// add opens one more file, whose columns must be those of the first.
func (s *reader) add(ctx context.Context, name string) error {
	f, err := source.OpenUntil(ctx, name)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkParquetEnds(f, info.Size()); err != nil {
		return err
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return err
	}
	if err := checkParquetChunks(p, info.Size()); err != nil {
		return err
	}
	if len(s.parts) > 0 && p.Schema().String() != s.parts[0].Schema().String() {
		return errors.New("has other columns than the first file")
	}
	s.noteRuns(p)
	s.parts = append(s.parts, p)
	s.info.Count += p.NumRows()
	return nil
}

// looked is how many rows are read to find out what bytes and nested lists are.
const looked = 100

// look reads the first rows.
func (s *reader) look(opts source.Options) error {
	n := 0
	for row, err := range s.rows() {
		if err != nil {
			return err
		}
		for _, c := range s.columns {
			if c.parts == nil {
				c.look(c.values(row), opts.IsImage)
			}
		}
		if n++; n == looked {
			break
		}
	}
	return nil
}

// Info implements Source.
func (s *reader) Info() source.Info { return s.info }

// Close implements Source.
func (s *reader) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
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
			name, split := s.place(i)
			if !yield(source.Sample{Name: name, Split: split, Data: s.data(row)}, nil) {
				return
			}
			i++
		}
	}
}

// place returns the number of a row, after the name of its file if there are several, and
// the split of this file, if any.
func (s *reader) place(i int64) (name, split string) {
	for k, p := range s.parts {
		if n := p.NumRows(); i >= n {
			i -= n
		} else if len(s.parts) > 1 {
			return filepath.ToSlash(s.files[k].Name()) + ":" + strconv.FormatInt(i, 10), s.splits.Of[s.names[k]]
		}
	}
	return strconv.FormatInt(i, 10), ""
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
