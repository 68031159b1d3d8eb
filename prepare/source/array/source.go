// Package array reads sources that consist of arrays of one length: .npy, .npz, safetensors, CIFAR and IDX files,
// and raw numbers without a header. Sample i has element i of the first axis of each array.
//
// Each format makes a list of [Column] values, which [New] joins to a source. Other packages (hdf5, zarr, unit,
// cells) make their columns with the same type. A Column opens a [Cursor] for reading in order, and has the
// functions At and Rows for random access where the file allows it; the source is Indexed if all columns have At.
// Values come in the byte order of fields: big-endian elements are swapped, and arrays in Fortran order are
// transposed in blocks that fit in memory.
//
// An array that cannot become a field is a [Rejection]. It is an error only if it is selected by name, or if all
// arrays are wanted; the error then says how to select the other arrays.
//
// Sizes in headers are compared with the size of the file before memory is allocated for them.
package array

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// arrays is a source of arrays of one length: each array is a field, and sample i has value i of each array.
type arrays struct {
	path    string
	info    source.Info
	columns []Column
	files   []io.Closer
	name    func(i int64) string // name of record i
}

// Column is one array of a source. At and Rows may run concurrently.
type Column struct {
	Field  source.Field
	Count  int64 // number of values
	Single bool  // the array has no axes, and its value is the only one

	// Open returns a cursor before the first value.
	Open func() (Cursor, error)

	// At appends value i to buf. It is nil if the array can only be read in order.
	At func(i int64, buf []byte) ([]byte, error)

	// Rows fills dst, of the right size, with values [a, b). It is nil if the values have different sizes, or if it
	// would be no faster than At.
	Rows func(a, b int64, dst []byte) error
}

// Cursor returns the values of a column in order. It serves one goroutine.
type Cursor interface {
	// Next returns the next value. The memory belongs to the caller: it is not reused, so values may go to other
	// goroutines.
	Next() ([]byte, error)
	Close() error
}

// indexedArrays is arrays with random access: all columns have At.
type indexedArrays struct{ *arrays }

// New returns the source of columns, which must have one length. Records are named by their numbers. The source
// owns files and closes them, also if New returns an error.
func New(kind, path, name string, columns []Column, files ...io.Closer) (source.Source, error) {
	return NewNamed(kind, path, name, columns, func(i int64) string { return strconv.FormatInt(i, 10) }, files...)
}

// NewNamed is New with a function that returns the name of a record.
func NewNamed(kind, path, name string, columns []Column, names func(i int64) string, files ...io.Closer) (
	source.Source, error) {
	s := &arrays{path: path, columns: columns, files: files, name: names,
		info: source.Info{Kind: kind, Name: name, Unit: "records"}}
	if err := s.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", path, err), s.Close())
	}
	// One column that can only be read in order makes the whole source sequential: a record needs all of them.
	for _, c := range columns {
		if c.At == nil {
			return s, nil
		}
	}
	return indexedArrays{s}, nil
}

// check fills in info, or returns why the columns do not make a source.
func (s *arrays) check() error {
	if len(s.columns) == 0 {
		return errors.New("holds no arrays")
	}
	if n := len(s.columns); n > layout.MaxFields {
		return fmt.Errorf("%d arrays, and a dataset has at most %d fields; choose some with --fields", n, layout.MaxFields)
	}
	s.info.Count = s.columns[0].Count
	var lengths []string
	same := true
	var chosen []column.Selection
	for _, c := range s.columns {
		chosen = append(chosen, column.Selection{Column: c.Field.Origin})
		if err := c.Field.Validate(); err != nil {
			return err
		}
		// All lengths are collected for the message, and not only the first that differs.
		same = same && c.Count == s.info.Count
		lengths = append(lengths, fmt.Sprintf("%s has %d", c.Field.Origin, c.Count))
		s.info.Fields = append(s.info.Fields, c.Field)
	}
	switch {
	case !same:
		return fmt.Errorf("arrays of several lengths: %s; choose arrays of one length: %s; or write sequences and "+
			"their offsets with penstock.Writer, one record each%s",
			source.Enumerate(lengths, 8), usual(s.columns), s.listCommand())
	case s.info.Count < 1:
		return errors.New("holds no records")
	}
	return column.Distinct(chosen, source.FieldNames(s.info.Fields))
}

// usual returns the --fields flag that selects the columns of the most common length; of several such lengths, the
// length whose columns have the most bytes. It is a suggestion in messages, and the order of comparisons makes it
// the same in each run.
func usual(columns []Column) string {
	count, size, most := make(map[int64]int), make(map[int64]int64), columns[0].Count
	for _, c := range columns {
		count[c.Count]++
		size[c.Count] += c.Count * int64(max(1, c.Field.RecordBytes()))
	}
	for n := range count {
		if cmp.Or(cmp.Compare(count[n], count[most]), cmp.Compare(size[n], size[most]), cmp.Compare(n, most)) > 0 {
			most = n
		}
	}
	var names []string
	for _, c := range columns {
		if c.Count == most {
			names = append(names, c.Field.Origin)
		}
	}
	return cmp.Or(column.FieldsCommand("", names), "--fields")
}

// listCommand returns the command that shows the lengths of all arrays, where such a command exists.
func (s *arrays) listCommand() string {
	if s.info.Kind != "hdf5" {
		return ""
	}
	return "; " + shell.On("inspect", s.path) + " shows all"
}

// Info implements Source.
func (s *arrays) Info() source.Info { return s.info }

// InUnits sets the declaration of the records in the notation of package unit, the lists of records, the lists that
// cannot be read, and the coordinates of axes.
func (s *arrays) InUnits(records string, lists []store.Split, broken []source.BrokenList,
	coordinates map[string]source.Coordinates) {
	s.info.Records, s.info.Lists, s.info.Broken, s.info.Coordinates = records, lists, broken, coordinates
}

// Note adds a sentence to Info.Hints.
func (s *arrays) Note(hint string) { s.info.Hints = append(s.info.Hints, hint) }

// Close implements Source.
func (s *arrays) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

// Samples implements Source.
func (s *arrays) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		cursors, err := s.cursors()
		defer closeAll(cursors)
		for i := int64(0); err == nil && i < s.info.Count; i++ {
			var sample source.Sample
			if sample, err = s.next(i, cursors); err == nil && !yield(sample, nil) {
				return
			}
		}
		if err != nil {
			yield(source.Sample{}, fmt.Errorf("source %s: %w", s.path, err))
		}
	}
}

// cursors opens a cursor for each column. With an error, it also returns the cursors that are open, for the caller
// to close.
func (s *arrays) cursors() (list []Cursor, err error) {
	for _, c := range s.columns {
		cursor, err := c.Open()
		if err != nil {
			return list, fmt.Errorf("%s: %w", c.Field.Origin, err)
		}
		list = append(list, cursor)
	}
	return list, nil
}

func closeAll(cursors []Cursor) {
	for _, c := range cursors {
		_ = c.Close() // what was read was checked when it was read
	}
}

// next returns sample i, with the next value of each cursor.
func (s *arrays) next(i int64, cursors []Cursor) (source.Sample, error) {
	values := make(source.Tuple, len(cursors))
	for k, c := range cursors {
		var err error
		if values[k], err = c.Next(); err != nil {
			return source.Sample{}, fmt.Errorf("%s: record %d: %w", s.columns[k].Field.Origin, i, CutShort(err))
		}
	}
	return source.Sample{Name: s.name(i), Data: values}, nil
}

// CutShort rewords io.EOF in a place where the file should go on, as a user cannot do anything with "EOF".
func CutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut short")
	}
	return source.WithoutPath(err)
}

// Sample implements Indexed.
func (s indexedArrays) Sample(i int64) (source.Sample, error) {
	return source.Sample{Name: s.name(i), Data: place{s.arrays, i}}, nil
}

// place is the Data of sample i in a source with random access. Read fetches the values.
type place struct {
	arrays *arrays
	i      int64
}

// Read implements Data.
func (p place) Read(v *source.Values) error {
	for k, c := range p.arrays.columns {
		// The values are read into the memory of v, so a worker allocates only for its largest record.
		b, err := c.At(p.i, v.Buffer(k))
		if err != nil {
			return fmt.Errorf("%s: %w", c.Field.Origin, CutShort(err))
		}
		v.Keep(k, b)
	}
	return nil
}

// ReadField implements source.Parted for numbers. It returns false for a value that cannot be read, so that Read
// returns the error.
func (p place) ReadField(v *source.Values, field int) bool {
	c := &p.arrays.columns[field]
	if c.Field.Content != "" {
		return false
	}
	b, err := c.At(p.i, v.Buffer(field))
	if err != nil {
		return false
	}
	v.Keep(field, b)
	return true
}

// InRanges implements Ranged.
func (s indexedArrays) InRanges(field int) bool {
	c := &s.columns[field]
	return c.Rows != nil && c.Field.Content == "" && !c.Field.Ragged
}

// ReadRange implements Ranged.
func (s indexedArrays) ReadRange(field int, a, b int64, dst []byte) error {
	c := &s.columns[field]
	if err := c.Rows(a, b, dst); err != nil {
		return fmt.Errorf("%s: %w", c.Field.Origin, CutShort(err))
	}
	return nil
}

// Select returns the selected columns with the selected field names; all columns if the selection is empty.
func Select(columns []Column, selection []column.Selection) ([]Column, error) {
	if len(selection) == 0 {
		return columns, nil
	}
	var list []Column
	for _, w := range selection {
		c, err := findColumn(columns, w)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// findColumn returns the column that a selection names: by its name in the file, or else by its field name, which
// is the name that users see in messages.
func findColumn(columns []Column, w column.Selection) (Column, error) {
	var origins, names []string
	for _, c := range columns {
		origins, names = append(origins, c.Field.Origin), append(names, c.Field.Name)
	}
	i := slices.Index(origins, w.Column)
	if i < 0 {
		i = slices.Index(names, w.Column)
	}
	if i < 0 {
		return Column{}, fmt.Errorf("--fields %s: there is no %q%s", w, w.Column, suggest.Hint(w.Column, origins))
	}
	if err := w.ErrArray(); err != nil {
		return Column{}, err
	}
	c := columns[i]
	c.Field.Name = w.FieldName()
	return c, nil
}
