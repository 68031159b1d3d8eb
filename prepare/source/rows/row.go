// Package rows makes sources of files that consist of typed rows: TFRecord, Arrow, MDS and token files. A format
// gives access to the rows of a file, and this package decides which fields they become, for all formats alike.
//
// A [Format] opens a [File], which lists its columns if it knows them, and yields one [Row] at a time. A Row passes
// its values to a [Visitor], so no row is ever a map, and no number is boxed. If files do not describe their
// columns completely, a scan over all rows (scan.go) finds types, shapes and classes first. A target then converts
// the values of a [Column] to the values of a field (column.go).
//
// A row that cannot be parsed is a [BadRow]: a bad sample, and not the end of the file.
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
	Unit string // what rows are called in messages

	// Sorted says that writers of the format sort the columns by name, so that their order means nothing and images
	// may come first.
	Sorted bool

	// Open opens the rows of a file, whose reads end with ctx.
	Open func(ctx context.Context, root *vfs.Root, path string) (File, error)

	// Splits assigns files to splits; nil means by the names of the files.
	Splits *source.FileSplits
}

// File is the rows of one file.
type File interface {
	// Columns returns the columns that the file declares; nil if only rows have their names.
	Columns() []Column

	// Count returns the number of rows; -1 if it is known only after reading them.
	Count() int64

	// Rows yields the rows from number first on. It ends after an error.
	Rows(first int64) iter.Seq2[Row, error]

	Close() error
}

// Row is one row. Its values can be read as long as its File is open.
type Row interface {
	// Each calls v with the values that v wants. Values that need memory are appended to buf. Each may run
	// concurrently with Each of other rows. If a name occurs twice, v gets both values, and the later value
	// counts.
	Each(buf *[]byte, v Visitor) error
}

// Visitor receives the values of a row.
type Visitor interface {
	// Column returns the number of a column, or -1 if its values are not wanted and need not be parsed.
	Column(name []byte) int

	// Value receives a value. Its bytes are valid as long as the row's buffer is not reused and its File is open.
	Value(column int, x *Value) error
}

// Value is a value of a row: bytes, several byte strings, or an array of numbers.
type Value struct {
	Null  bool
	DType tensor.DType // type of the numbers in Data, little endian; Invalid if Data is bytes
	Data  []byte

	// Of numbers: the lengths of the axes. Rank 0 is a single number.
	Rank int
	Dims [tensor.MaxRank]int

	// A list of byte strings has them in Items, and Data is unused.
	List  bool
	Items [][]byte
}

// Varies is the length of an axis along which the lists of a value differ in length.
const Varies = -1

// Shape returns the lengths of the axes.
func (x *Value) Shape() []int { return x.Dims[:x.Rank] }

// SetShape sets the lengths of the axes, of which there are fewer than tensor.MaxRank.
func (x *Value) SetShape(dims ...int) { x.Rank = copy(x.Dims[:], dims) }
