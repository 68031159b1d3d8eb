package unit

import (
	"fmt"

	"github.com/penstock/penstock/internal/sys/shell"
)

// Guess finds out whether the units of a declaration are records, or their rows are, and sets records.Rows. It returns
// false where both may be meant.
//
// Rows: all arrays of a unit have one length, and units have several. Units: an array has another length than the
// others, or is one value. Groups that are called train and test have rows.
func Guess(units []Unit, records *Records) (certain bool, err error) {
	first := int64(-1)
	arrays, singles, agree, nearly, differ := 0, false, true, true, false
	for k, u := range units {
		members, err := u.Members()
		if err != nil {
			return false, fmt.Errorf("%s: %w", u.Name(), err)
		}
		least, most := int64(-1), int64(-1)
		for _, m := range members {
			if m.Rows < 0 {
				singles = true
				continue
			}
			if k == 0 {
				arrays++
			}
			if least < 0 {
				least = m.Rows
			}
			least, most = min(least, m.Rows), max(most, m.Rows)
		}
		if k == 0 {
			first = most
		}
		agree, nearly, differ = agree && least == most, nearly && most-least <= 1, differ || most != first
	}
	switch {
	case agree && !singles && splitsOf(units).Names != nil:
		records.Rows = true
		return true, nil
	case singles, !nearly, !agree && !differ:
		records.Rows = false
		return true, nil
	case agree && differ && arrays > 1:
		records.Rows = true
		return true, nil
	}
	return false, nil
}

// Ambiguous is the error of units of which only people know what the records are.
func Ambiguous(units []Unit, records *Records) error {
	ofRows, ofUnits := *records, *records
	ofRows.Rows, ofUnits.Rows = true, false
	return fmt.Errorf("%s, %s and others (%d in all) have the same arrays; is each row of them a record: %s, or each of "+
		"them: %s? (in Python: records=%q or records=%q)", units[0].Name(), units[1].Name(), len(units),
		shell.Command("--records", ofRows.String()), shell.Command("--records", ofUnits.String()), &ofRows, &ofUnits)
}

// Guessed says for people what was guessed.
func (r *Records) Guessed() string {
	what := "each"
	if r.Rows {
		what = "each row"
	}
	inner := *r
	inner.Rows = false
	return fmt.Sprintf("%s of %s is a record, as if asked for by %s", what, &inner, shell.Command("--records", r.String()))
}
