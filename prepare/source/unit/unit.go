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

	// Members describes the arrays. It reads no elements.
	Members() ([]Member, error)

	// Open returns the columns of some members, by their names, and what closes them, which may be nil. The values of a
	// column are the rows of the array. An array without rows has a column of one value.
	Open(members []string) ([]array.Column, io.Closer, error)

	// Attribute returns what the unit notes of itself under a name, or with a slash before the name what its file does.
	Attribute(name string) (Attribute, bool)
}

// Named is a Unit whose rows have names.
type Named interface {
	Unit

	// RowName returns the name of a row. It may run concurrently with other calls.
	RowName(row int64) string
}

// Lone is the name of the only member of a unit that is one array.
const Lone = "data"

// Member is an array of a unit.
type Member struct {
	Name     string       // the path in the unit
	Field    source.Field // of a row, or of the one value
	Rows     int64        // along the first axis; -1 of an array without axes
	Axis     string       // the name of the first axis, such as time in netCDF; "" without one
	Grows    bool         // that axis is unlimited: files continue each other along it
	Meaning  string       // what numbers stand for, such as units and factors; all units of a field agree
	Optional bool         // it becomes a field only if it is named
	Err      error        // why its values cannot become a field
}

// Meanings are the attributes by which netCDF says what numbers stand for.
var Meanings = []string{"units", "calendar", "scale_factor", "add_offset"}

// Attribute is a value that belongs to a unit.
type Attribute struct {
	Field source.Field // of a number or a text
	Value []byte
}

// within says in which unit an error came up.
func within(u Unit, err error) error {
	if err == nil || u.Name() == "" {
		return err
	}
	return fmt.Errorf("%s: %w", u.Name(), err)
}
