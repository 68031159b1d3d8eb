package source

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/penstock/penstock/internal/suggest"
)

// arrays is a source of arrays of one length: each is a field, and sample i is the values
// at place i of all.
type arrays struct {
	path    string
	info    Info
	columns []column
	files   []io.Closer
}

// column is one array of a source.
type column struct {
	field Field
	count int64

	// open returns the values from the first on.
	open func() (cursor, error)

	// at appends value i to buf. It is nil where the array can only be read in order.
	at func(i int64, buf []byte) ([]byte, error)
}

// cursor gives the values of a column one after the other. It serves one goroutine.
type cursor interface {
	// next returns the next value, which nothing changes any more.
	next() ([]byte, error)
	close() error
}

// indexedArrays is a source of arrays of which any value can be read.
type indexedArrays struct{ *arrays }

// newArrays returns the source of these columns, which must have one length. It takes over
// the files, also with an error.
func newArrays(kind, path, name string, columns []column, files ...io.Closer) (Source, error) {
	s := &arrays{path: path, columns: columns, files: files, info: Info{Kind: kind, Name: name, Unit: "records"}}
	if err := s.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", path, err), s.Close())
	}
	for _, c := range columns {
		if c.at == nil {
			return s, nil
		}
	}
	return indexedArrays{s}, nil
}

// check fills in info, or says what does not fit.
func (s *arrays) check() error {
	if len(s.columns) == 0 {
		return errors.New("holds no arrays")
	}
	s.info.Count = s.columns[0].count
	var lengths []string
	same := true
	for i, c := range s.columns {
		for _, other := range s.columns[:i] {
			if other.field.Name == c.field.Name {
				return fmt.Errorf("%s and %s would both be the field %q; name them with --fields", other.field.Origin, c.field.Origin, c.field.Name)
			}
		}
		if err := c.field.Validate(); err != nil {
			return err
		}
		same = same && c.count == s.info.Count
		lengths = append(lengths, fmt.Sprintf("%s has %d", c.field.Origin, c.count))
		s.info.Fields = append(s.info.Fields, c.field)
	}
	switch {
	case !same:
		return fmt.Errorf("arrays of several lengths: %s; choose those of one length with --fields%s", enumerate(lengths, 8), s.told())
	case s.info.Count < 1:
		return errors.New("holds no records")
	}
	return nil
}

// told says where the lengths of all arrays can be seen.
func (s *arrays) told() string {
	if s.info.Kind != "hdf5" {
		return ""
	}
	return "; inspect " + s.path + " shows all"
}

// Info implements Source.
func (s *arrays) Info() Info { return s.info }

// note adds a sentence to what the source says of itself.
func (s *arrays) note(hint string) { s.info.Hints = append(s.info.Hints, hint) }

// Close implements Source.
func (s *arrays) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

// tuple is the values of a sample that are in memory.
type tuple [][]byte

// Read implements Data.
func (t tuple) Read(v *Values) error {
	for i, b := range t {
		v.Borrow(i, b)
	}
	return nil
}

// Samples implements Source.
func (s *arrays) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		cursors, err := s.cursors()
		defer closeAll(cursors)
		for i := int64(0); err == nil && i < s.info.Count; i++ {
			var sample Sample
			if sample, err = s.next(i, cursors); err == nil && !yield(sample, nil) {
				return
			}
		}
		if err != nil {
			yield(Sample{}, fmt.Errorf("source %s: %w", s.path, err))
		}
	}
}

func (s *arrays) cursors() (list []cursor, err error) {
	for _, c := range s.columns {
		cursor, err := c.open()
		if err != nil {
			return list, fmt.Errorf("%s: %w", c.field.Origin, err)
		}
		list = append(list, cursor)
	}
	return list, nil
}

func closeAll(cursors []cursor) {
	for _, c := range cursors {
		_ = c.close() // what was read was checked when it was read
	}
}

func (s *arrays) next(i int64, cursors []cursor) (Sample, error) {
	values := make(tuple, len(cursors))
	for k, c := range cursors {
		var err error
		if values[k], err = c.next(); err != nil {
			return Sample{}, fmt.Errorf("%s: record %d: %w", s.columns[k].field.Origin, i, cutShort(err))
		}
	}
	return Sample{Name: strconv.FormatInt(i, 10), Data: values}, nil
}

// cutShort words the end of a file where there should be more.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut short")
	}
	return withoutPath(err)
}

// Sample implements Indexed.
func (s indexedArrays) Sample(i int64) (Sample, error) {
	return Sample{Name: strconv.FormatInt(i, 10), Data: place{s.arrays, i}}, nil
}

// place is the Data of sample i, which is read when it is asked for.
type place struct {
	arrays *arrays
	i      int64
}

// Read implements Data.
func (p place) Read(v *Values) error {
	for k, c := range p.arrays.columns {
		b, err := c.at(p.i, v.Buffer(k))
		if err != nil {
			return fmt.Errorf("%s: %w", c.field.Origin, cutShort(err))
		}
		v.Keep(k, b)
	}
	return nil
}

// selectColumns keeps the columns that are wanted, under the names that are wanted.
func selectColumns(columns []column, wanted []Wanted) ([]column, error) {
	if len(wanted) == 0 {
		return columns, nil
	}
	var list []column
	for _, w := range wanted {
		c, err := findColumn(columns, w)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func findColumn(columns []column, w Wanted) (column, error) {
	var names []string
	for _, c := range columns {
		if c.field.Origin == w.Column || c.field.Name == w.Column {
			if w.Type != "" {
				return c, fmt.Errorf("--fields %s: an array has a type of its own; leave :%s out, and change it with a transform", w, w.Type)
			}
			c.field.Name = w.fieldName()
			return c, nil
		}
		names = append(names, c.field.Origin)
	}
	return column{}, fmt.Errorf("--fields %s: there is no %q%s", w, w.Column, suggest.Hint(w.Column, names))
}

// baseName returns the last element of an absolute path.
func baseName(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Base(path)
}
