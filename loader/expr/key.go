package expr

import (
	"context"
	"fmt"
	"math"

	"github.com/penstock/penstock/loader"
)

// Key is a field with one number or text per record, by which the records of two Sources are
// matched.
type Key struct {
	Text  bool // strings, not numbers
	Label bool // numbers with names: see [Key.Named]

	src source
	e   expression
}

// KeyOf returns the Key of a field of src, or, for "source_name", of the names of its records'
// samples.
func KeyOf(ctx context.Context, src loader.Source, field string) (Key, error) {
	s, err := newSource(src)
	if err != nil {
		return Key{}, err
	}
	if err := src.Retain(); err != nil {
		return Key{}, err
	}
	defer src.Release()
	e, err := newCompiler(ctx, s).compile(&node{kind: fieldNode, text: field})
	switch {
	case err != nil:
		return Key{}, err
	case e.list:
		return Key{}, failf(0, "field %q has several values a record; a key has one", field)
	}
	return Key{Text: e.kind == textKind, Label: e.label(), src: s, e: e}, nil
}

// Kind describes the values: Keys of one kind can be matched.
func (k Key) Kind() string {
	switch k.e.kind {
	case textKind:
		return "a text"
	case floatKind:
		return "a float"
	case truthKind:
		return "true or false"
	}
	return "a whole number"
}

// Named returns the Key that consists of the class names of a label.
func (k Key) Named() (Key, error) {
	e, err := named(k.e)
	k.e, k.Text, k.Label = e, true, false
	return k, err
}

// Unsigned reports whether whole numbers are uint64, and not int64.
func (k Key) Unsigned() bool { return k.e.kind == unsignedKind }

// Values are the values of consecutive records: strings, or Integers, whose bits are uint64 if the Key is Unsigned.
// Floats are the bits of float64, equal for equal numbers and for all NaNs; false is 0, and true 1.
type Values struct {
	First    int
	N        int
	Integers []int64
	texts    texts
}

// Text returns the text of record First+i.
func (v *Values) Text(i int) []byte { return v.texts.at(i) }

// Each calls f with the values of records [first, end), block by block, from several goroutines. Values are valid in f.
func (k Key) Each(ctx context.Context, first, end int, f func(v *Values) error) error {
	if err := k.src.Retain(); err != nil {
		return err
	}
	defer k.src.Release()
	s := &scan{ctx: ctx, src: k.src, first: first, end: end, step: mostRecords}
	return s.run(func(b *block, active []bool) error {
		c, err := k.e.of(b, active)
		if err != nil {
			return err
		}
		return f(&Values{First: b.first, N: b.n, Integers: k.bits(b, c), texts: c.texts})
	})
}

// bits returns numbers as integers that are equal exactly if the numbers are: -0 becomes 0, and all
// NaNs become one.
func (k Key) bits(b *block, c column) []int64 {
	switch k.e.kind {
	case floatKind:
		out := b.integers.take(len(c.floats))
		for i, x := range c.floats {
			switch {
			case x != x:
				x = math.NaN()
			case x == 0: // -0, too
				x = 0
			}
			out[i] = int64(math.Float64bits(x))
		}
		return out
	case truthKind:
		out := b.integers.take(len(c.truths))
		for i, is := range c.truths {
			out[i] = int64(truthOf[float64](is))
		}
		return out
	}
	return c.integers
}

// Show returns the value of record First+i as people write it.
func (k Key) Show(v *Values, i int) string {
	switch k.e.kind {
	case textKind:
		return fmt.Sprintf("%q", v.Text(i))
	case floatKind:
		return fmt.Sprint(math.Float64frombits(uint64(v.Integers[i])))
	case truthKind:
		return fmt.Sprint(v.Integers[i] == 1)
	}
	return text64(v.Integers[i], k.e.kind == integerKind)
}
