package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/shell"
)

// parquetSource is a source of rows of Parquet files. A struct of bytes and path, as the
// Hugging Face hub stores images, is one column.
type parquetSource struct {
	path    string
	names   []string // of the files
	files   []vfs.File
	parts   []*parquet.File
	columns []*parquetColumn
	runs    map[int]bool // leaves whose booleans are encoded in runs, in any file
	info    Info
	splits  fileSplits
}

func openParquet(ctx context.Context, path string, opts Options, wanted []Wanted) (Source, error) {
	names, err := filesOf(path, "*.parquet")
	if err != nil {
		return nil, err
	}
	s := &parquetSource{path: path, names: names, splits: splitsOfFiles(names), info: Info{Kind: "parquet", Name: baseName(path), Unit: "rows"}}
	s.info.Splits = s.splits.names
	err = guardParquet(func() error { return s.open(ctx, names, opts, wanted) })
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return s, nil
}

func (s *parquetSource) open(ctx context.Context, names []string, opts Options, wanted []Wanted) error {
	for _, name := range names {
		if err := s.add(name); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), withoutPath(err))
		}
	}
	if s.info.Count == 0 {
		return errors.New("holds no rows")
	}
	columns, err := parquetColumns(s.parts[0])
	if err != nil {
		return err
	}
	if s.columns, err = selectParquet(columns, wanted); err != nil {
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
	for i, c := range s.columns {
		for _, other := range s.columns[:i] {
			if other.field.Name == c.field.Name {
				return fmt.Errorf("columns %s and %s would both be the field %q; name them with --fields", other.name, c.name, c.field.Name)
			}
		}
		s.info.Fields = append(s.info.Fields, c.field)
	}
	return nil
}

// scan goes through the columns of which not all is known.
func (s *parquetSource) scan(ctx context.Context, seen func(n int64)) error {
	for _, c := range s.columns {
		scan := newParquetScan(c)
		if scan == nil {
			continue
		}
		for i, p := range s.parts {
			if err := scan.file(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(s.files[i].Name()), err)
			}
			if s.info.Count >= worthTelling {
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
func (s *parquetSource) decide() error {
	var errs []error
	var good []string
	for _, c := range s.columns {
		err := c.decide()
		if s.runs[c.leaf.ColumnIndex] {
			err = errRuns
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", c.name, err))
		} else {
			good = append(good, c.name)
		}
	}
	switch {
	case len(errs) == 0:
		return nil
	case len(good) == 0 || s.columns[0].wanted.Column != "":
		return errors.Join(errs...)
	}
	if flag := shell.Command("--fields", strings.Join(good, ",")); flag != "" {
		return fmt.Errorf("%w; leave them out: %s", errors.Join(errs...), flag)
	}
	return fmt.Errorf("%w; leave them out with --fields", errors.Join(errs...))
}

// add opens one more file, whose columns must be those of the first.
func (s *parquetSource) add(name string) error {
	f, err := vfs.Open(name)
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
func (s *parquetSource) look(opts Options) error {
	n := 0
	for row, err := range s.rows() {
		if err != nil {
			return err
		}
		for _, c := range s.columns {
			c.look(c.values(row), opts.IsImage)
		}
		if n++; n == looked {
			break
		}
	}
	return nil
}

// Info implements Source.
func (s *parquetSource) Info() Info { return s.info }

// Close implements Source.
func (s *parquetSource) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

// Samples implements Source.
func (s *parquetSource) Samples() iter.Seq2[Sample, error] { return s.From(0) }

// From implements Spanned.
func (s *parquetSource) From(n int64) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		i := n
		for row, err := range s.rowsFrom(n) {
			if err != nil {
				yield(Sample{}, fmt.Errorf("source %s: row %d: %w", s.path, i, err))
				return
			}
			name, split := s.place(i)
			if !yield(Sample{Name: name, Split: split, Data: s.data(row)}, nil) {
				return
			}
			i++
		}
	}
}

// place returns the number of a row, behind the name of its file where there are several, and
// the split that this file is, if any.
func (s *parquetSource) place(i int64) (name, split string) {
	for k, p := range s.parts {
		if n := p.NumRows(); i >= n {
			i -= n
		} else if len(s.parts) > 1 {
			return filepath.ToSlash(s.files[k].Name()) + ":" + strconv.FormatInt(i, 10), s.splits.of[s.names[k]]
		}
	}
	return strconv.FormatInt(i, 10), ""
}

// data copies the values of a row.
func (s *parquetSource) data(row [][]parquet.Value) Data {
	values := make(tuple, len(s.columns))
	for i, c := range s.columns {
		err := guardParquet(func() (err error) { values[i], err = c.value(row); return err })
		if err != nil {
			return unreadable{values, fmt.Errorf("column %s: %w", c.name, err)}
		}
	}
	return values
}

// unreadable is the Data of a sample that was read before, and of which err says what is bad.
type unreadable struct {
	tuple
	err error
}

// Read implements Data.
func (u unreadable) Read(v *Values) error {
	_ = u.tuple.Read(v) // as far as there are values
	return u.err
}
