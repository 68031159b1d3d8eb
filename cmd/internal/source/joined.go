package source

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// matching returns the columns that a text of names and globs with a plus between stands for,
// each part in the order of the table, and the first part that stands for none.
func matching(text string, order []string) (list []string, missing string) {
	for _, part := range strings.Split(text, "+") {
		found := false
		for _, name := range order {
			match, _ := path.Match(part, name)
			if match = match || name == part; match && !slices.Contains(list, name) {
				list = append(list, name)
			}
			found = found || match
		}
		if !found && missing == "" {
			missing = part
		}
	}
	return list, missing
}

// join returns the column that several of the table become: an array of their numbers.
func (s *tableScan) join(w Wanted) (tableColumn, error) {
	names, missing := matching(w.Column, s.order)
	fail := func(format string, args ...any) (tableColumn, error) {
		return tableColumn{}, fmt.Errorf("--fields %s: "+format, append([]any{w}, args...)...)
	}
	switch {
	case missing != "" || len(names) == 0:
		return fail("there is no column %q%s", missing, suggest.Hint(missing, s.order))
	case w.Field == "":
		return fail("%d columns become one field, which needs a name: %s=NAME", len(names), w.Column)
	}
	typ := columnType{dtype: tensor.Int64, shape: []int{len(names)}}
	if w.Type == "" {
		for _, name := range names {
			switch g := s.named[name].guess.result("x"); { // not called as labels are
			case g.kind != numbers || g.ragged || g.shape != nil:
				return fail("column %q holds no single numbers", name)
			case g.dtype.IsFloat():
				typ.dtype = tensor.Float32
			}
		}
	} else {
		given, _ := parseType(w.Type) // ParseFields has checked it
		if typ.dtype = given.dtype; given.shape != nil {
			typ.shape = given.shape
		}
		if given.kind != numbers || given.ragged || tensor.Shape(typ.shape).Elems() != len(names) {
			return fail("%d columns of single numbers make no %v", len(names), given)
		}
	}
	return tableColumn{name: w.Column, from: names, joined: true, typ: typ, field: typ.field(w.Field)}, nil
}

// putJoined makes numbers of several cells the value of a field.
func (c tableColumn) putJoined(v *Values, field int, cells []cell) error {
	b := v.Buffer(field)
	for i, cell := range cells {
		if cell.missing() {
			v.Keep(field, b)
			return fmt.Errorf("column %s: %w: it is empty", c.from[i], ErrValue)
		}
		var err error
		if b, err = appendNumber(b, trimmed(cell.text), c.typ.dtype); err != nil {
			v.Keep(field, b)
			return fmt.Errorf("column %s: %w: %w", c.from[i], ErrValue, err)
		}
	}
	v.Keep(field, b)
	return nil
}

// manyColumns are more than a person names one by one.
const manyColumns = 64

// hintJoin says how columns become one array, where very many of them are single numbers.
func (t *table) hintJoin() {
	var names []string
	for _, c := range t.columns {
		if c.typ.kind == numbers && !c.typ.ragged && c.typ.shape == nil && !LabelName(c.name) {
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
	t.info.Hints = append(t.info.Hints, fmt.Sprintf("%d columns of numbers became a field each; one array of them is made faster, and is what training takes: --fields '%s=x,...'", len(names), example))
}
