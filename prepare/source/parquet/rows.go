package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/store"
)

// guardParquet calls f, which calls the library with untrusted bytes, and returns a panic as an error.
func guardParquet(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is corrupt: %v", p)
		}
	}()
	return f()
}

// rows yields the rows of all files. A row is valid until the next row.
func (s *reader) rows() iter.Seq2[[][]parquet.Value, error] { return s.rowsFrom(0) }

// rowsFrom yields the rows of all files without the first n. Files and row groups before row n are not read.
func (s *reader) rowsFrom(n int64) iter.Seq2[[][]parquet.Value, error] {
	return func(yield func([][]parquet.Value, error) bool) {
		skip := n
		for i, p := range s.parts {
			if skip >= p.NumRows() {
				skip -= p.NumRows()
				continue
			}
			more, err := fileRows(p, skip, yield)
			skip = 0
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", filepath.Base(s.files[i].Name()), err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// fileRows yields the rows of a file without the first skip rows. Whole row groups are skipped by their counts;
// only rows before the first one in its row group are decoded and dropped.
func fileRows(p *part, skip int64, yield func([][]parquet.Value, error) bool) (more bool, err error) {
	r := groupRows{batch: make([]parquet.Row, 64), values: make([][]parquet.Value, len(p.leaves)),
		leaves: slices.Repeat([]int{-1}, len(p.Schema().Columns()))}
	for k, at := range p.leaves {
		if at >= 0 {
			r.leaves[at] = k
		}
	}
	more = true
	for _, g := range p.RowGroups() {
		if n := g.NumRows(); skip >= n {
			skip -= n
			continue
		}
		if err == nil && more {
			err = r.open(g)
		}
		left := g.NumRows()
		for err == nil && more {
			if err = r.next(); err != nil {
				break
			}
			if left--; skip > 0 {
				skip--
			} else {
				more = yield(r.values, nil)
			}
		}
		if err == io.EOF {
			err = nil
		}
		// The library ends silently if pages have fewer rows than the row group announces.
		if err == nil && more && left != 0 {
			err = fmt.Errorf("a row group of %d rows has pages of %d: %w", g.NumRows(), g.NumRows()-left, store.ErrCorrupt)
		}
		err = errors.Join(err, r.close())
	}
	return more, err
}

// groupRows reads the rows of row groups, one group after the other. Each call of the library is guarded on its
// own, so that a panic of the caller's code is not mistaken for a corrupt file.
type groupRows struct {
	rows   parquet.Rows
	batch  []parquet.Row
	left   []parquet.Row
	err    error             // returned by the library together with the batch
	values [][]parquet.Value // by leaf of the first file: the current row
	leaves []int             // by leaf of the file: the leaf of the first file, or -1
}

func (r *groupRows) open(g parquet.RowGroup) error {
	return guardParquet(func() error { r.rows = g.Rows(); return nil })
}

// next reads the next row into values.
func (r *groupRows) next() error {
	if len(r.left) == 0 {
		if r.err != nil {
			return r.err
		}
		n := 0
		r.err = guardParquet(func() (err error) { n, err = r.rows.ReadRows(r.batch); return err })
		if n == 0 && r.err == nil {
			r.err = io.EOF
		}
		if r.left = r.batch[:n]; n == 0 {
			return r.err
		}
	}
	row := r.left[0]
	r.left = r.left[1:]
	clear(r.values)
	return guardParquet(func() error {
		row.Range(func(column int, v []parquet.Value) bool {
			if k := r.leaves[column]; k >= 0 {
				r.values[k] = v
			}
			return true
		})
		return nil
	})
}

func (r *groupRows) close() error {
	rows := r.rows
	r.rows, r.left, r.err = nil, nil, nil
	if rows == nil {
		return nil
	}
	return guardParquet(rows.Close)
}
