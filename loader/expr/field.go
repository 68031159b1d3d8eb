package expr

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// field compiles a field, or some elements of its records.
func (c *compiler) field(n *node) (expression, error) {
	spec, err := c.spec(n)
	if err != nil {
		return expression{}, err
	}
	switch {
	case spec.Name == "":
		return c.sourceNames(n)
	case spec.IsBytes() && n.args != nil:
		return expression{}, failf(n.at, "%s is a text; indices are for numbers", spec.Name)
	case spec.Content == tensor.Images:
		return expression{}, failf(n.at, "%s holds image files; ask for len(%s), their number", spec.Name, spec.Name)
	case spec.Content == tensor.Image && spec.IsBytes():
		return expression{}, failf(n.at, "%s holds image files; ask for len(%s), their bytes", spec.Name, spec.Name)
	case spec.IsBytes():
		return expression{kindType: kindType{kind: textKind}, at: n.at, of: reads(spec.Name, readTexts(spec.Name))}, nil
	case spec.Content == tensor.Sparse && (len(n.args) < 2 || n.args[1] == nil): // the columns would count as values
		return expression{}, failf(n.at, "%s holds pairs of a column and a value; ask for `%s`[:, 1], the values that are stored, "+
			"or len(`%s`), their number", spec.Name, spec.Name, spec.Name)
	}
	return c.numbers(n, spec)
}

// sourceNames compiles the source names that the Source knows.
func (c *compiler) sourceNames(n *node) (expression, error) {
	if n.args != nil {
		return expression{}, failf(n.at, "%s is a text; indices are for numbers", sourceName)
	}
	if c.src.Len() > 0 {
		first, err := c.src.can.Named.SourceName(c.ctx, 0)
		if err != nil {
			return expression{}, err
		}
		if first == "" {
			return expression{}, failf(n.at, "the dataset holds no source names; preprocess with --names stores them")
		}
	}
	return expression{kindType: kindType{kind: textKind}, at: n.at, of: reads(sourceName, func(b *block) (column, error) {
		var t texts
		t.data, t.offsets = b.bytes.take(0), b.integers.take(b.n+1)
		t.offsets[0] = 0
		for i := range b.n {
			name, err := b.src.can.Named.SourceName(b.ctx, b.first+i)
			if err != nil {
				return column{}, err
			}
			t.data = append(t.data, name...)
			t.offsets[i+1] = int64(len(t.data))
		}
		return column{texts: t}, nil
	})}, nil
}

// reads returns a function that reads the records of a block once, however often the expression
// uses the field.
func reads(key string, read func(b *block) (column, error)) func(b *block, active []bool) (column, error) {
	return func(b *block, _ []bool) (column, error) {
		if c, ok := b.fields[key]; ok {
			return c, nil
		}
		c, err := read(b)
		if err == nil {
			b.fields[key] = c
		}
		return c, err
	}
}

// warm brings the records of the block into memory before they are touched.
func (b *block) warm(field string) error {
	if b.src.can.Mapped == nil {
		return nil
	}
	return b.src.can.Mapped.Warm(field, b.first, b.first+b.n)
}

// rows returns the rows of ragged records, with their offsets.
func (b *block) rows(field string) (tensor.View, []int64, error) {
	if err := b.warm(field); err != nil {
		return tensor.View{}, nil, err
	}
	offsets := b.integers.take(b.n + 1)
	v, err := b.src.can.Ragged.SliceRagged(field, b.first, b.first+b.n, offsets)
	return v, offsets, err
}

func readTexts(field string) func(b *block) (column, error) {
	return func(b *block) (column, error) {
		v, offsets, err := b.rows(field)
		if err != nil {
			return column{}, err
		}
		return column{texts: texts{v.Bytes(), offsets}}, nil
	}
}

// numbers compiles a field of numbers.
func (c *compiler) numbers(n *node, spec tensor.Spec) (expression, error) {
	t := kindType{kind: kindOf(spec.DType), dtype: spec.DType}
	if c.src.can.Classed != nil && t.kind == integerKind {
		t.classes = c.src.can.Classed.Classes(spec.Name)
	}
	e := elements{field: spec.Name, ragged: spec.Ragged, at: n.at, choice: choice{dtype: spec.DType}}
	if err := e.index(spec, n); err != nil {
		return expression{}, err
	}
	t.list = e.list
	field := spec.Name
	if t.list || e.rowIndexed { // a row may not exist
		field = ""
	}
	return expression{kindType: t, at: n.at, field: field, of: func(b *block, active []bool) (column, error) {
		if e.ragged && e.rowIndexed {
			return e.readRow(b, active) // whose errors depend on which records are active
		}
		return reads(e.key, e.read)(b, active)
	}}, nil
}

func kindOf(t tensor.DType) kind {
	switch {
	case t == tensor.Bool:
		return truthKind
	case t == tensor.Uint64:
		return unsignedKind
	case t.IsFloat():
		return floatKind
	}
	return integerKind
}

// elements is the choice that indices make among the elements of a field's records.
type elements struct {
	field  string
	key    string
	at     int
	ragged bool

	list       bool
	rowIndexed bool // of variable length: one row is chosen
	row        int  // negative from the end
	choice
}

// index sets the elements that the indices of a node choose.
func (e *elements) index(spec tensor.Spec, n *node) error {
	shape, indices := spec.Shape, n.args
	e.size, e.list = shape.Elems(), spec.Ragged || len(shape) > 0
	axes := len(shape)
	if spec.Ragged {
		axes++
	}
	switch {
	case axes == 0 && len(indices) > 0:
		return failf(n.at, "%s is one value a record; leave the indices out", n.text)
	case len(indices) > axes:
		return failf(n.at, "%s has %s, and %d indices", n.text, axesText(axes), len(indices))
	}
	e.key = n.text
	for _, i := range indices {
		if e.key += ","; i != nil {
			e.key += fmt.Sprint(int64(i.value.bits))
		}
	}
	if spec.Ragged && len(indices) > 0 {
		if indices[0] != nil {
			e.rowIndexed, e.row = true, int(int64(indices[0].value.bits))
		}
		indices = indices[1:]
	}
	all := len(indices) == 0
	e.list = (spec.Ragged && !e.rowIndexed) || len(shape) > len(indices)
	e.chosen = []int{0}
	for axis, length := range shape {
		var at []int
		if axis < len(indices) && indices[axis] != nil {
			i := int(int64(indices[axis].value.bits))
			if i < -length || i >= length {
				return failf(indices[axis].at, "index %d of an axis with %d elements: %s has the shape %v", i, length,
					n.text, shape)
			}
			at = []int{(i + length) % length}
		} else {
			e.list = true
			at = make([]int, length)
			for k := range at {
				at[k] = k
			}
		}
		if all {
			continue
		}
		var next []int
		for _, base := range e.chosen {
			for _, k := range at {
				next = append(next, base*length+k)
			}
		}
		e.chosen = next
	}
	if all {
		e.chosen = nil
	}
	return nil
}

func axesText(n int) string {
	if n == 1 {
		return "one axis"
	}
	return fmt.Sprintf("%d axes", n)
}

// read returns the chosen elements of all rows.
func (e *elements) read(b *block) (column, error) {
	v, rows, offsets, err := e.view(b)
	if err != nil {
		return column{}, err
	}
	c := e.convert(b, v, rows, nil)
	if e.list {
		c.offsets = b.scaled(offsets, e.count())
	}
	return c, nil
}

// view returns the rows of the block, with their offsets if the field is ragged.
func (e *elements) view(b *block) (v tensor.View, rows int, offsets []int64, err error) {
	if e.ragged {
		v, offsets, err = b.rows(e.field)
		if err != nil {
			return v, 0, nil, err
		}
		return v, int(offsets[b.n]), offsets, nil
	}
	if err := b.warm(e.field); err != nil {
		return v, 0, nil, err
	}
	v, err = b.src.Slice(e.field, b.first, b.first+b.n)
	return v, b.n, nil, err
}

// scaled turns offsets of rows into offsets of elements; nil stands for one row per record.
func (b *block) scaled(rows []int64, elements int) []int64 {
	if rows != nil && elements == 1 {
		return rows
	}
	out := b.integers.take(b.n + 1)
	for i := range out {
		at := int64(i)
		if rows != nil {
			at = rows[i]
		}
		out[i] = at * int64(elements)
	}
	return out
}

// readRow returns the elements of one row of each record. A row that does not exist is an error of
// its record, unless the record is not active.
func (e *elements) readRow(b *block, active []bool) (column, error) {
	v, _, offsets, err := e.view(b)
	if err != nil {
		return column{}, err
	}
	rows := b.integers.take(b.n)
	for i := range rows {
		n := offsets[i+1] - offsets[i]
		at := int64(e.row)
		if at < 0 {
			at += n
		}
		if rows[i] = offsets[i] + at; at >= 0 && at < n {
			continue
		}
		if active[i] {
			return column{}, recordError(b, i, e.at, "index %d of %d rows of %s; write len(%s) > %d and ... before it",
				e.row, n, e.field, e.field, max(e.row, -e.row-1))
		}
		rows[i] = -1
	}
	c := e.convert(b, v, b.n, rows)
	if e.list {
		c.offsets = b.scaled(nil, e.count())
	}
	return c, nil
}

// lengths returns a function that counts the rows of records without reading them.
func lengths(field string) func(b *block) (column, error) {
	return func(b *block) (column, error) {
		offsets, out := b.integers.take(b.n+1), b.integers.take(b.n)
		if err := b.src.can.Ragged.Lengths(b.ctx, field, b.indices, offsets); err != nil {
			return column{}, err
		}
		for i := range out {
			out[i] = offsets[i+1] - offsets[i]
		}
		return column{integers: out}, nil
	}
}
