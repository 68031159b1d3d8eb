package unit

import (
	"fmt"
	"io"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
)

// Unit is a group or a file that has arrays. It serves several goroutines.
type Unit interface {
	// Name returns the path of the unit in the source. No other unit has it.
	Name() string

	// Members describes the arrays of the unit. It reads no elements.
	Members() ([]Member, error)

	// Open returns the columns of some members, by their names, and a closer, which may be nil. The values of a column
	// are the rows of the array. An array without rows has a column of one value.
	Open(members []string) ([]array.Column, io.Closer, error)

	// Attribute returns the unit's attribute of that name or, for a name with a slash before it, the attribute of the
	// unit's file.
	Attribute(name string) (Attribute, bool)
}

// Named is a Unit whose rows have names.
type Named interface {
	Unit

	// RowName returns the name of a row. It may run concurrently with other calls.
	RowName(row int64) string
}

// Lone is the name of the only member of a unit that consists of one array.
const Lone = "data"

// Member describes an array of a unit.
type Member struct {
	Name     string       // the path in the unit
	Field    source.Field // of a row, or of the one value
	Rows     int64        // length of the first axis; -1 for an array without axes
	Axis     string       // the name of the first axis, such as time in netCDF; "" without one
	Grows    bool         // the first axis is unlimited: files continue each other along it
	Meaning  string       // what numbers stand for, such as units and factors; all units must agree
	Optional bool         // the member becomes a field only if it is selected by name
	Err      error        // why its values cannot become a field
}

// Meanings are the attributes by which netCDF says what stored numbers stand for.
var Meanings = []string{"units", "calendar", "scale_factor", "add_offset"}

// Attribute is a value that belongs to a unit.
type Attribute struct {
	Field source.Field // of a number or a text
	Value []byte
}

// within adds to an error the name of the unit in which it occurred.
func within(u Unit, err error) error {
	if err == nil || u.Name() == "" {
		return err
	}
	return fmt.Errorf("%s: %w", u.Name(), err)
}
