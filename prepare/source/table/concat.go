package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// concat returns the field for a selection of several columns: an array of their numbers.
func (s *tableScan) concat(w column.Selection) (tableColumn, error) {
	names, missing := column.Matching(w.Column, s.order)
	fail := func(format string, args ...any) (tableColumn, error) {
		return tableColumn{}, fmt.Errorf("--fields %s: "+format, append([]any{w}, args...)...)
	}
	switch {
	case missing != "" || len(names) == 0:
		return fail("there is no column %q%s", missing, suggest.Hint(missing, s.order))
	case w.Field == "":
		return fail("%d columns become one field, which needs a name: %s=NAME", len(names), w.Column)
	}
	typ := column.Type{DType: tensor.Int64, Shape: []int{len(names)}}
	if w.CellType() == "" {
		var all column.Guess
		some := false
		for _, name := range names {
			g := s.named[name].guess.Result("x") // not called as labels are
			if g.Kind != column.Numbers || g.Ragged || g.Shape != nil {
				return fail("column %q holds no single numbers", name)
			}
			if g.DType != tensor.Bool { // true is 1 among numbers
				all.Merge(&s.named[name].guess)
				some = true
			}
		}
		if g := all.Result("x"); some && (g.Kind != column.Numbers || g.Shape != nil) {
			return fail("no type holds the numbers of all columns; name one, such as :float64, which rounds integers " +
				"beyond 2^53")
		} else if some {
			typ.DType = g.DType
		}
	} else {
		given, _ := column.ParseType(w.CellType()) // ParseFields has checked it
		if typ.DType = given.DType; given.Shape != nil {
			typ.Shape = given.Shape
		}
		if given.Kind != column.Numbers || given.Ragged || tensor.Shape(typ.Shape).Elems() != len(names) {
			return fail("%d columns of single numbers make no %v", len(names), given)
		}
	}
	return tableColumn{name: w.Column, from: names, concat: true, typ: typ, field: typ.FieldOf(w.Field)}, nil
}

// putConcat sets a field to the numbers of several cells.
func (c tableColumn) putConcat(v *source.Values, field int, cells []column.Cell) error {
	b := v.Buffer(field)
	for i, cell := range cells {
		var err error
		if b, err = c.typ.AppendOne(b, cell); err != nil {
			v.Keep(field, b)
			return fmt.Errorf("column %s: %w", c.from[i], source.ValueError("%w", err))
		}
	}
	v.Keep(field, b)
	return nil
}

// manyColumns is a number of columns that nobody wants to select one by one.
const manyColumns = 64

// hintConcat adds a hint how to join columns to an array, if very many columns are single numbers.
func (t *table) hintConcat() {
	var names []string
	for _, c := range t.columns {
		if c.typ.Kind == column.Numbers && !c.typ.Ragged && c.typ.Shape == nil && !column.LabelName(c.name) {
			names = append(names, c.name)
		}
	}
	if len(names) < manyColumns {
		return
	}
	prefix := strings.TrimRight(names[0], "0123456789")
	example := prefix + "*"
	if slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) }) || prefix == "" {
		example = strings.Join(names[:2], "+") + "+..."
	}
	t.info.Hints = append(t.info.Hints, fmt.Sprintf("%d columns of numbers became a field each; one array of them is "+
		"faster, and the form that training needs: --fields '%s=x,...'", len(names), example))
}
