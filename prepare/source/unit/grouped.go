package unit

import (
	"slices"

	"github.com/penstock/penstock/prepare/source/column"
)

// Grouped is an open file of groups and arrays, in which units may be.
type Grouped interface {
	// Cells returns the file as a unit of single cells; nil of a file that has none.
	Cells() Unit
	// Units returns the groups and arrays that a declaration names.
	Units(records *Records) ([]Unit, error)
	// Names reports whether a selection names an array of the file by its path.
	Names(selection []column.Selection) bool
	// Guess returns the declaration that follows from groups that are alike, and these groups; nil of other files. The
	// error of a file that leaves a choice has the declarations to type.
	Guess(selection []column.Selection) (*Records, []Unit, error)
}

// Find returns the units of a file, as they are declared or else as the file lets them be guessed, with a hint for people
// about the guess. Records are nil of a file whose arrays are columns.
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
	case !f.Names(selection):
		if records, units, err = f.Guess(selection); records != nil {
			hint = records.Guessed()
		}
	}
	return records, units, hint, err
}
