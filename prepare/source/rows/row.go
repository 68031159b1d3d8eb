// Package rows has the sources that consist of rows whose values have types: TFRecord, Arrow, MDS. A format provides
// access to the rows of a file; this package decides which fields they become, for all formats alike.
//
// A [Format] opens a [File], which lists its columns if it knows them, and yields a [Row] at a time. A Row hands its
// values to a [Visitor] without making a map or boxing a number. Where a file does not fully describe its columns, one
// scan over all rows (scan.go) finds types, shapes and classes first. A row that cannot be parsed is a [BadRow]: a bad
// sample, and not the end of the file.
package rows

import (
	"context"
	"iter"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Format is a kind of files that consist of rows.
type Format struct {
	Kind string
	Unit string // word for rows, for people

	// Sorted says that the writers of the format sort the columns by name, so that their order means nothing.
	Sorted bool

	// Open returns the rows of a file, which is opened until the end of ctx.
	Open func(ctx context.Context, root *vfs.Root, path string) (File, error)

	// Splits says which file belongs to which split; nil if the names of files say so.
	Splits *source.FileSplits
}

// File is the rows of one file.
type File interface {
	// Columns returns the columns that the file declares; nil if only its rows tell.
	Columns() []Column

	// Count returns the number of rows; -1 if it is known only after reading them.
	Count() int64

	// Rows yields the rows from number first on. It ends after an error.
	Rows(first int64) iter.Seq2[Row, error]

	Close() error
}

// Row is one row, whose values can be read as long as its File is open.
type Row interface {
	// Each passes the values that v wants to v. Values may be appended to buf. Each may run concurrently with Each of
	// other rows. If a name occurs twice, the later value replaces the earlier one.
	Each(buf *[]byte, v Visitor) error
}

// Visitor takes the values of a row.
type Visitor interface {
	// Column returns the number of a column; -1 if its values are not wanted, so that a Row need not parse them.
	Column(name []byte) int

	// Value takes a value. Its bytes are valid as long as the row's buffer and its File.
	Value(column int, x *Value) error
}

// Value is a value of a row.
type Value struct {
	Null  bool
	DType tensor.DType // of numbers, little endian in Data; Invalid: Data is bytes
	Data  []byte

	// Of numbers: the lengths of the axes. Rank 0 is one number.
	Rank int
	Dims [tensor.MaxRank]int

	// Several byte strings, instead of Data.
	List  bool
	Items [][]byte
}

// Varies is the length of an axis along which a value's lists have several lengths.
const Varies = -1

// Shape returns the lengths of the axes.
func (x *Value) Shape() []int { return x.Dims[:x.Rank] }

// SetShape sets the lengths of the axes, fewer than tensor.MaxRank.
func (x *Value) SetShape(dims ...int) { x.Rank = copy(x.Dims[:], dims) }
