package expr

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/penstock/penstock/tensor"
)

// textTest compiles starts_with, ends_with, contains or matches.
func (c *compiler) textTest(n *node) (expression, error) {
	args, err := c.all(n.args)
	if err != nil {
		return expression{}, err
	}
	of, pattern := args[0], args[1]
	if of.kind != textKind && !of.label() {
		return of, failf(of.at, "%s is not a text, which %s needs", of.kindType, n.text)
	}
	if pattern.constant == nil || pattern.kind != textKind {
		return pattern, failf(pattern.at, "the second argument of %s is a text in quotes", n.text)
	}
	test, err := testOf(n.text, pattern.constant.text, pattern.at)
	if err != nil {
		return of, err
	}
	if of.label() {
		table := make([]bool, len(of.classes))
		for i, class := range of.classes {
			table[i] = test([]byte(class))
		}
		return lookup(n, of, answers{table, test(nil)}), nil
	}
	return fold(mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.texts.offsets) - 1)
		for i := range out {
			out[i] = test(x.texts.at(i))
		}
		return out
	}), of)
}

// testOf returns the test with a name. The pattern is compiled once for all records.
func testOf(name, pattern string, at int) (func(text []byte) bool, error) {
	p := []byte(pattern)
	switch name {
	case "starts_with":
		return func(t []byte) bool { return bytes.HasPrefix(t, p) }, nil
	case "ends_with":
		return func(t []byte) bool { return bytes.HasSuffix(t, p) }, nil
	case "contains":
		return func(t []byte) bool { return bytes.Contains(t, p) }, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failf(at, "%v; matches takes the syntax of RE2, without references and lookaround", err)
	}
	return re.Match, nil
}

// length compiles len: the number of rows of records, or of characters of strings. Rows are counted
// by their offsets, without reading them.
func (c *compiler) length(n *node) (expression, error) {
	of := n.args[0]
	whole := kindType{kind: integerKind}
	if of.kind == fieldNode && of.args == nil {
		spec, err := c.spec(of)
		if err != nil {
			return expression{}, err
		}
		if spec.Content == tensor.Images {
			e := expression{kindType: kindType{kind: textKind}, at: n.at, of: reads(spec.Name, readTexts(spec.Name))}
			return expression{kindType: whole, at: n.at, of: counts(e, images)}, nil
		}
		characters := spec.Name == "" || spec.IsBytes() && spec.Content != tensor.Image
		if spec.Ragged && !characters {
			return expression{kindType: whole, at: n.at, of: reads("len "+spec.Name, lengths(spec.Name))}, nil
		}
	}
	e, err := c.compile(of)
	switch {
	case err != nil:
		return e, err
	case e.kind == textKind:
		return fold(expression{kindType: whole, at: n.at, of: counts(e, characters)}, e)
	case e.list:
		return expression{kindType: whole, at: n.at, of: counts(e, values)}, nil
	}
	return e, failf(e.at, "%s has no length; len is for strings, and for fields with several values a record", e.kindType)
}

// counts returns a function that computes a number per record.
func counts(of expression, count func(dst []int64, x column)) func(b *block, active []bool) (column, error) {
	return func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		n := b.n
		if x.one {
			n = 1
		}
		out := column{one: x.one, integers: b.integers.take(n)}
		count(out.integers, x)
		return out, nil
	}
}

func characters(dst []int64, x column) {
	for i := range dst {
		dst[i] = int64(utf8.RuneCount(x.texts.at(i)))
	}
}

// images counts the image files in records. A record that is cut short counts as well: whoever
// reads its images reports it.
func images(dst []int64, x column) {
	for i := range dst {
		n, _ := tensor.CountImages(x.texts.at(i))
		dst[i] = int64(n)
	}
}

func values(dst []int64, x column) {
	for i := range dst {
		dst[i] = x.offsets[i+1] - x.offsets[i]
	}
}

// isEmpty compiles the test whether records have no rows, or no characters.
func (c *compiler) isEmpty(n *node) (expression, error) {
	of := n.args[0]
	e, err := c.length(&node{kind: call, at: n.at, text: "len", args: n.args})
	if err != nil {
		if of.kind == fieldNode {
			if spec, known := c.spec(of); known == nil && !spec.Ragged {
				return e, failf(of.at,
					"every record has a value of %s; is_empty is for strings, and for records of variable length", of.text)
			}
		}
		return e, err
	}
	return fold(mapped(n.at, e, func(b *block, x column) []bool {
		out := b.truths.take(len(x.integers))
		for i, v := range x.integers {
			out[i] = v == 0
		}
		return out
	}), e)
}

// isNaN compiles the test whether a number is NaN.
func (c *compiler) isNaN(n *node) (expression, error) {
	of, err := c.compile(n.args[0])
	if err != nil {
		return of, err
	}
	if !of.number() {
		return of, failf(of.at, "%s is not a number, which is_nan needs", of.kindType)
	}
	return fold(mapped(n.at, of, func(b *block, x column) []bool {
		if of.kind != floatKind {
			out := b.truths.take(len(x.integers))
			clear(out)
			return out
		}
		out := b.truths.take(len(x.floats))
		for i, v := range x.floats {
			out[i] = v != v
		}
		return out
	}), of)
}
