package unit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// Guess decides whether the units of a declaration are records or their rows are, and sets records.Rows. It returns
// false if both are possible. All members decide, so that a selection does not change what a record is; where they leave
// it open, the selected members decide.
//
// Rows are records if all arrays of a unit have one length, and units differ in it, or if an axis with a name is
// unlimited. Units are records if no two arrays have one length, or if a member is a single value and lengths are
// the same in all units, as the lengths of images are. Groups with names of splits have rows.
//
//	demo_0: actions (57,7), obs (57,10); demo_1: (61,7), (61,10)        rows: lengths agree in a unit and differ between
//	a: image (480,640,3), label (); b: the same                         units: there is a single number
//	a: points (1200,3), faces (800,3); b: (900,3), (650,3)              units: no two arrays have one length
//	a: x (10,3), y (10); b: x (10,3), y (10)                            undecided: the user is asked
func Guess(units []Unit, records *Records, selection []column.Selection) (certain bool, err error) {
	if len(selection) > 0 {
		if certain, err := Guess(units, records, nil); certain || err != nil {
			return certain, err
		}
	}
	first, grows := int64(-1), true
	var all shape
	for k, u := range units {
		members, err := u.Members()
		if err != nil {
			return false, within(u, err)
		}
		grows = grows && slices.ContainsFunc(members, func(m Member) bool { return m.Grows })
		in := shapeOf(members, selection)
		if k == 0 {
			all, first = in, in.most
		}
		all.agree, all.pairs, all.nearly = all.agree && in.agree, all.pairs && in.pairs, all.nearly && in.nearly
		all.numbers, all.texts, all.differ = all.numbers || in.numbers, all.texts || in.texts, all.differ || in.most != first
	}
	switch singles := all.numbers || all.texts; {
	// An unlimited axis is the axis along which files continue each other.
	case grows:
		records.Rows = true
		return true, nil
	case all.agree && !singles && (splitsOf(units).Names != nil || all.differ && all.arrays > 1):
		records.Rows = true
		return true, nil
	case all.numbers && !(all.pairs && all.differ), all.texts && !all.pairs, !all.nearly && !all.pairs:
		records.Rows = false
		return true, nil
	}
	return false, nil
}

// shape summarizes the lengths of the arrays of units.
type shape struct {
	arrays         int   // number of arrays that have rows
	most           int64 // number of rows of the longest
	agree, nearly  bool  // all arrays have one length; all but for a difference of one row
	pairs          bool  // two arrays have one length
	differ         bool  // units differ in length
	numbers, texts bool  // some member is a single number; a single text
}

// shapeOf summarizes the lengths of the selected members of a unit.
func shapeOf(members []Member, selection []column.Selection) (s shape) {
	least, counts := int64(-1), make(map[int64]int)
	for _, m := range members {
		switch {
		case len(selection) > 0 && !slices.ContainsFunc(selection, m.isNamed):
		case m.Rows >= 0:
			if least < 0 {
				least = m.Rows
			}
			least, s.most = min(least, m.Rows), max(s.most, m.Rows)
			counts[m.Rows]++
			s.arrays, s.pairs = s.arrays+1, s.pairs || counts[m.Rows] > 1
		case m.Field.Content == tensor.Text:
			s.texts = true
		default:
			s.numbers = true
		}
	}
	s.agree, s.nearly = s.arrays > 0 && least == s.most, s.most-least <= 1
	return s
}

// isNamed reports whether a selection names the member.
func (m *Member) isNamed(w column.Selection) bool {
	return m.Name == strings.Trim(w.Column, "/")
}

// Ambiguous returns the error for units of which only the user knows whether they or their rows are the records.
// ways are the declarations that are possible: nested groups have one for each level.
func Ambiguous(units []Unit, ways ...*Records) error {
	var flags []string
	for _, r := range ways {
		for _, rows := range []bool{true, false} {
			way := *r
			way.Rows = rows
			what := "each of them"
			if rows {
				what = "each row of them"
			}
			if r != ways[0] {
				what = strings.Replace(what, "them", "the groups in them", 1)
			}
			flags = append(flags, fmt.Sprintf("%s: %s", what, shell.Command("--records", way.String())))
		}
	}
	last := len(flags) - 1
	return fmt.Errorf("%s, %s and others (%d in all) are alike; is a record %s, or %s?",
		units[0].Name(), units[1].Name(), len(units), strings.Join(flags[:last], ", "), flags[last])
}

// Guessed returns a sentence that tells the user which declaration was guessed.
func (r *Records) Guessed() string {
	what := "each"
	if r.Rows {
		what = "each row"
	}
	inner := *r
	inner.Rows = false
	return fmt.Sprintf("%s of %s is a record, as if asked for by %s", what, &inner, shell.Command("--records", r.String()))
}
