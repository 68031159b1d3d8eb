package unit

import (
	"slices"

	"github.com/penstock/penstock/prepare/source/column"
)

// Grouped is an open file of groups and arrays that may contain units.
type Grouped interface {
	// Cells returns the file as a unit of single cells; nil if the file has no cells.
	Cells() Unit
	// Units returns the groups and arrays that a declaration matches, in the order of units.
	Units(records *Records) ([]Unit, error)
	// Names reports whether a selection names an array of the file by its path.
	Names(selection []column.Selection) bool
	// Guess returns the declaration that groups with the same arrays suggest, and these groups; nil for any other
	// file. If several declarations are possible, the error lists them.
	Guess(selection []column.Selection) (*Records, []Unit, error)
}

// Find returns the units of a file: as declared, or as the file suggests, with a hint about the guess. records is
// nil if the file has no units, and its arrays are columns.
func Find(f Grouped, declared string, selection []column.Selection) (
	records *Records, units []Unit, hint string, err error) {
	cells := f.Cells()
	switch {
	case declared != "":
		if records, err = Parse(declared); err != nil {
			return nil, nil, "", err
		}
		if cells != nil && slices.Equal(records.Levels, []string{"*"}) { // as of a glob that matches one file
			return records, []Unit{cells}, "", nil
		}
		units, err = f.Units(records)
	case cells != nil:
		records, units = &Records{Rows: true}, []Unit{cells}
	// A selection of paths from the root is about arrays of the whole file, and not of units.
	case !f.Names(selection):
		if records, units, err = f.Guess(selection); records != nil {
			hint = records.Guessed()
		}
	}
	return records, units, hint, err
}
