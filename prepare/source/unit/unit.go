package unit

import (
	"fmt"
	"io"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
)

// Unit is a group or a file with arrays. Any number of goroutines may use it.
type Unit interface {
	// Name returns the path of the unit in the source. It is unique.
	Name() string

	// Members describes the arrays of the unit, without reading elements.
	Members() ([]Member, error)

	// Open returns the columns of the named members, in that order, and a closer, which may be nil. The values of a
	// column are the rows of its array; an array without axes has one value. A missing member has a zero Column.
	Open(members []string) ([]array.Column, io.Closer, error)

	// Attribute returns an attribute of the unit, or for a name with a slash in front, of the unit's file.
	Attribute(name string) (Attribute, bool)
}

// Named is a Unit whose rows have names, such as cells with barcodes.
type Named interface {
	Unit

	// RowName returns the name of a row. It may run concurrently with other calls.
	RowName(row int64) string
}

// Lone is the name of the only member of a unit that is a single array.
const Lone = "data"

// Member describes an array of a unit.
type Member struct {
	Name     string       // path in the unit
	Field    source.Field // field of a row, or of the only value
	Rows     int64        // length of the first axis; -1 for an array without axes
	Axis     string       // name of the first axis, such as time in netCDF; "" if it has none
	Grows    bool         // the first axis is unlimited: files continue each other along it
	Optional bool         // becomes a field only if it is selected by name
	Err      error        // why the member cannot become a field
}

// Attribute is a number or a text that belongs to a unit.
type Attribute struct {
	Field source.Field // of a number or a text
	Value []byte
}

// within adds the name of a unit to an error.
func within(u Unit, err error) error {
	if err == nil || u.Name() == "" {
		return err
	}
	return fmt.Errorf("%s: %w", u.Name(), err)
}
