package rows

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// maxColumns limits the columns of files that do not declare them. In a hostile file, each row could have other
// names, and each name takes memory.
const maxColumns = 10_000

// scan is a pass over rows that finds types, shapes and classes. As a Visitor it receives the values of the columns
// that are not settled.
type scan struct {
	opts     source.Options
	wants    map[string]column.Selection // by column; nil selects all columns
	declared bool                        // the files declare their columns, so an unknown name is not a new column
	columns  []*Column
	byName   map[string]int
	open     []bool // by column: its values are needed
	buf      []byte
}

// newScan compares the declared columns of all files by name. Those that become fields must be in every file, with one
// type.
func newScan(files []File, names []string, selection []column.Selection, opts source.Options) (*scan, error) {
	s := &scan{opts: opts, byName: make(map[string]int)}
	for _, w := range selection {
		if s.wants == nil {
			s.wants = make(map[string]column.Selection)
		}
		s.wants[w.Column] = w
	}
	var first error
	bad := make(map[string]bool)
	for i, f := range files {
		columns := f.Columns()
		s.declared = s.declared || columns != nil
		differs := func(column, how string) {
			if _, wanted := s.wants[column]; !wanted && s.wants != nil {
				return
			}
			if bad[column] = true; first == nil {
				first = fmt.Errorf("%s: column %q %s %s", names[i], column, how, names[0])
			}
		}
		own := make(map[string]bool)
		for _, c := range columns {
			if own[c.Name] {
				return nil, fmt.Errorf("%s: two columns are called %q", names[i], c.Name)
			}
			own[c.Name] = true
			at, known := s.byName[c.Name]
			switch {
			case i == 0:
				s.add(&c)
			case !known:
				differs(c.Name, "is not in")
			case c.DType != s.columns[at].DType || !slices.Equal(c.Shape, s.columns[at].Shape) || c.List != s.columns[at].List ||
				c.Text != s.columns[at].Text || !slices.Equal(c.Classes, s.columns[at].Classes):
				differs(c.Name, "has another type than in")
			}
		}
		for _, c := range s.columns {
			if !own[c.Name] {
				differs(c.Name, "is missing, and is in")
			}
		}
	}
	if first != nil {
		good := slices.DeleteFunc(s.order(), func(name string) bool { return bad[name] })
		return nil, column.Undecided([]error{first}, good, s.wants != nil)
	}
	return s, nil
}

// add adds a column and returns its number.
func (s *scan) add(c *Column) int {
	w, wanted := s.wants[c.Name]
	if wanted = wanted || s.wants == nil; wanted && c.wordLabel(w) {
		c.known = make(map[string]bool)
	}
	s.byName[c.Name] = len(s.columns)
	s.columns = append(s.columns, c)
	s.open = append(s.open, wanted && !c.settled(w))
	return len(s.columns) - 1
}

// order returns the names of the columns.
func (s *scan) order() (list []string) {
	for _, c := range s.columns {
		list = append(list, c.Name)
	}
	return list
}

// run reads the files as far as necessary, and returns the number of rows in each. If the files declare everything,
// including their counts, it reads nothing.
func (s *scan) run(files []File, names []string) (counts []int64, err error) {
	// With declared columns, a wrong name is known before any row is read.
	for w := range s.wants {
		if _, known := s.byName[w]; s.declared && !known {
			return nil, fmt.Errorf("--fields %s: there is no column %q%s", w, w, suggest.Hint(w, s.order()))
		}
	}
	for i, f := range files {
		n := f.Count()
		if n < 0 || !s.declared || slices.Contains(s.open, true) {
			if n, err = s.file(f); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", names[i], n, err)
			}
		}
		counts = append(counts, n)
	}
	for _, c := range s.columns {
		c.finish()
	}
	return counts, nil
}

// file reads the rows of a file and returns their number; with an error, the number of the row that failed.
func (s *scan) file(f File) (n int64, err error) {
	for row, err := range f.Rows(0) {
		if err != nil {
			return n, err
		}
		s.buf = s.buf[:0]
		if err := row.Each(&s.buf, s); err != nil {
			if !errors.Is(err, source.ErrValue) { // which will be a bad sample
				return n, err
			}
		}
		n++
		s.opts.Seen(1)
	}
	return n, nil
}

// Column implements Visitor. Without declared columns, a new name is a new column.
func (s *scan) Column(name []byte) int {
	at, ok := s.byName[string(name)]
	if ok && s.open[at] {
		return at
	}
	if ok || s.declared {
		return -1
	}
	// Nothing is declared: every value is a list of something, as in a Feature of TFRecord.
	if at = s.add(&Column{Name: string(name), List: true, Unwrap: true, Sniff: true}); s.open[at] {
		return at
	}
	return -1
}

// Value implements Visitor.
func (s *scan) Value(at int, x *Value) error {
	if len(s.columns) > maxColumns {
		return fmt.Errorf("has more than %d columns", maxColumns)
	}
	s.columns[at].look(x, s.opts.IsImage)
	return nil
}

// BadRow is a row that cannot be read, although the rows after it can. Err is a source.ErrValue.
type BadRow struct{ Err error }

// Each implements Row.
func (b BadRow) Each(*[]byte, Visitor) error { return b.Err }
