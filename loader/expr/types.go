package expr

import (
	"math"

	"github.com/penstock/penstock/tensor"
)

// kindType is the type of an expression: of its value for a record, or of its list of values.
type kindType struct {
	kind    kind
	list    bool         // any number of values
	classes []string     // of a label: names of the values 0, 1, ...
	dtype   tensor.DType // of the field that it is; Invalid if it is computed
}

func (t kindType) number() bool {
	return t.kind == integerKind || t.kind == unsignedKind || t.kind == floatKind
}

// label reports whether the values have class names.
func (t kindType) label() bool { return t.classes != nil }

func (t kindType) String() string {
	one := [...]string{"true or false", "a whole number", "a whole number", "a number", "a text"}[t.kind]
	if t.label() {
		one = "a label"
	}
	if t.list {
		return "a list of values, each " + one
	}
	return one
}

// expression is a compiled part of a filter, bound to the fields of a Source.
type expression struct {
	kindType
	at int

	// field is set if the value is one number of that field.
	field string

	// constant is set if the value is the same for all records.
	constant *value

	// of returns the values of the records of a block. Those of records that are not active may be anything, and are never
	// an error.
	of func(b *block, active []bool) (column, error)
}

// constantOf returns an expression with a constant value.
func constantOf(at int, v value) expression {
	c := literalColumn(v)
	return expression{kindType: kindType{kind: v.kind}, at: at, constant: &v,
		of: func(*block, []bool) (column, error) { return c, nil }}
}

// fold computes an expression whose parts are all constants, once and for all.
func fold(e expression, parts ...expression) (expression, error) {
	for _, p := range parts {
		if p.constant == nil {
			return e, nil
		}
	}
	b := &block{n: 1}
	c, err := e.of(b, []bool{true})
	if err != nil {
		return e, err
	}
	v := value{kind: e.kind}
	switch e.kind {
	case truthKind:
		v.truth = c.truths[0]
	case integerKind, unsignedKind:
		v.bits = uint64(c.integers[0])
	case floatKind:
		v.float = c.floats[0]
	case textKind:
		v.text = string(c.texts.at(0))
	}
	return constantOf(e.at, v), nil
}

// counted converts true and false to 1 and 0, with which numbers are compared as in NumPy.
func counted(of expression) expression {
	if of.kind != truthKind {
		return of
	}
	if of.constant != nil {
		return constantOf(of.at, value{kind: integerKind, bits: uint64(of.constant.number())})
	}
	e := expression{kindType: kindType{kind: integerKind, list: of.list}, at: of.at}
	e.of = func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		out := column{one: x.one, offsets: x.offsets, integers: b.integers.take(len(x.truths))}
		for i, is := range x.truths {
			out.integers[i] = 0
			if is {
				out.integers[i] = 1
			}
		}
		return out, nil
	}
	return e
}

// wantTruth returns an error unless an expression is true or false.
func wantTruth(e expression) error {
	switch {
	case e.kind == truthKind:
		return nil
	case e.label():
		return failf(e.at, "a label is not a condition; compare it, as in label = 'name'")
	case e.kind == textKind:
		return failf(e.at, "a text is not a condition; compare it, as in x = 'text'")
	}
	return failf(e.at, "a number is not a condition; compare it, as in x > 0")
}

// rounded returns a constant rounded to a field's type, unless that type has no finite number for
// it: 0.1 in a filter should equal a stored float32 of 0.1.
func rounded(e expression, t tensor.DType) expression {
	if e.constant == nil || e.kind != floatKind {
		return e
	}
	f := t.Round(e.constant.float)
	if math.IsInf(f, 0) {
		return e
	}
	return constantOf(e.at, value{kind: floatKind, float: f})
}
