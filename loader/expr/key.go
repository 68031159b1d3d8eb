package expr

import (
	"context"

	"github.com/penstock/penstock/loader"
)

// Key is a field with one whole number or text a record, by which records of two Sources are matched.
type Key struct {
	Text  bool // strings, not integers
	Label bool // numbers with names: see [Key.Named]

	src source
	e   expression
}

// KeyOf returns the Key that a field of src is, or the names of its records' samples: "source_name".
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
	case e.kind == floatKind:
		return Key{}, failf(0, "field %q has floats; a key is a whole number or a text, as 0.1 differs between types", field)
	case e.kind == truthKind:
		return Key{}, failf(0, "field %q is true or false; a key is a whole number or a text", field)
	}
	return Key{Text: e.kind == textKind, Label: e.label(), src: s, e: e}, nil
}

// Named returns the Key of the names of a label.
func (k Key) Named() (Key, error) {
	e, err := named(k.e)
	k.e, k.Text, k.Label = e, true, false
	return k, err
}

// Unsigned reports whether whole numbers are uint64, and not int64.
func (k Key) Unsigned() bool { return k.e.kind == unsignedKind }

// Values are those of consecutive records: Integers, whose bits are uint64 if the Key is Unsigned, or strings.
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
		return f(&Values{First: b.first, N: b.n, Integers: c.integers, texts: c.texts})
	})
}
