// Package formula computes numbers from those of fields, element by element:
//
//	(nir - red) / (nir + red)
//
// The syntax is Python's, from loosest to tightest: comparisons (< <= > >= == !=), + -, * /, a sign, **. Functions are
// sqrt, exp, log, log1p, abs, minimum, maximum, where and clip, which are those of NumPy.
package formula

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind says what a node is.
type kind int

const (
	number kind = iota
	field
	operator // text: + - * / ** negate, or a comparison
	call     // text: the function
)

// node is a part of an expression.
type node struct {
	kind  kind
	at    int // byte
	text  string
	value float64 // of a number
	index int     // of a field: its place in Names
	args  []*node
}

const (
	maxText  = 1 << 16 // bytes of an expression
	maxDepth = 100     // operations in each other
)

// functions are the numbers of arguments of each.
var functions = map[string]int{
	"sqrt": 1, "exp": 1, "log": 1, "log1p": 1, "abs": 1, "minimum": 2, "maximum": 2, "where": 3, "clip": 3,
}

var comparisons = []string{"<", "<=", ">", ">=", "==", "!="}

// reserved are the words that Python's syntax keeps, so that they name no field.
var reserved = strings.Fields("False None True and as assert async await break class continue def del elif else " +
	"except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

// Formula is an expression.
type Formula struct {
	Names   []string // the fields that it has, in the order in which they come
	Columns []int    // where each comes first, in characters from 1
	root    *node
}

// failure is an error of a place in an expression.
type failure struct {
	at     int
	reason string
}

func (f failure) Error() string { return fmt.Sprintf("column %d: %s", f.at+1, f.reason) }

// parser reads an expression.
type parser struct {
	s       string
	at      int
	nesting int // of parentheses and signs
	names   []string
	columns []int
}

// Parse reads an expression. Its errors name the column.
func Parse(s string) (*Formula, error) {
	if len(s) > maxText {
		return nil, fmt.Errorf("an expression of %d bytes; it may have %d", len(s), maxText)
	}
	p := &parser{s: s}
	root, err := p.comparison()
	if err == nil && p.peek() != "" {
		err = p.unexpected("an operator")
	}
	if err == nil && root.depth() > maxDepth {
		err = fmt.Errorf("more than %d operations in each other; derive it in two steps", maxDepth)
	}
	if err == nil && len(p.names) == 0 {
		err = errors.New("it names no field")
	}
	if err != nil {
		return nil, err
	}
	return &Formula{p.names, p.columns, root}, nil
}

func (n *node) depth() (d int) {
	for _, a := range n.args {
		d = max(d, a.depth())
	}
	return d + 1
}

func (p *parser) failf(format string, args ...any) error {
	return failure{p.at, fmt.Sprintf(format, args...)}
}

func (p *parser) unexpected(wanted string) error {
	if t := p.peek(); t != "" {
		return p.failf("%s was expected, not %q", wanted, t)
	}
	return p.failf("%s was expected, not the end", wanted)
}

// peek returns the next token, and moves to its begin; "" at the end.
func (p *parser) peek() string {
	for p.at < len(p.s) && (p.s[p.at] == ' ' || p.s[p.at] == '\t') {
		p.at++
	}
	rest := p.s[p.at:]
	if rest == "" {
		return ""
	}
	if c := rest[0]; isWord(c) || c == '.' {
		n := 1
		for n < len(rest) && (isWord(rest[n]) || rest[n] == '.' || isSign(rest, n)) {
			n++
		}
		return rest[:n]
	}
	for _, two := range []string{"**", "<=", ">=", "==", "!=", "//", "<<", ">>", "&&", "||"} {
		if strings.HasPrefix(rest, two) {
			return two
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	return rest[:n]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isSign reports whether a sign belongs to a number: that of an exponent.
func isSign(s string, n int) bool {
	return (s[n] == '+' || s[n] == '-') && (s[n-1] == 'e' || s[n-1] == 'E') && (isDigit(s[0]) || s[0] == '.')
}

// skip takes the next token if it is one of some, and returns it.
func (p *parser) skip(tokens ...string) string {
	if t := p.peek(); t != "" && slices.Contains(tokens, t) {
		p.at += len(t)
		return t
	}
	return ""
}

// nested reads a part that may have others inside.
func (p *parser) nested(read func() (*node, error)) (*node, error) {
	if p.nesting++; p.nesting > maxDepth {
		return nil, p.failf("more than %d operations in each other; derive it in two steps", maxDepth)
	}
	defer func() { p.nesting-- }()
	return read()
}

func (p *parser) comparison() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	p.peek()
	at := p.at
	t := p.skip(comparisons...)
	if t == "" {
		return left, nil
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	if slices.Contains(comparisons, p.peek()) {
		return nil, failure{left.at, "a comparison cannot go on; write where(a < b, b < c, 0)"}
	}
	return &node{kind: operator, at: at, text: t, args: []*node{left, right}}, nil
}

func (p *parser) sum() (*node, error) { return p.chain(p.product, "+", "-") }

func (p *parser) product() (*node, error) { return p.chain(p.signed, "*", "/") }

// chain reads parts with operators between them, from left to right.
func (p *parser) chain(part func() (*node, error), operators ...string) (*node, error) {
	n, err := part()
	for err == nil {
		t := p.skip(operators...)
		if t == "" {
			break
		}
		left, right := n, (*node)(nil)
		right, err = part()
		n = &node{kind: operator, at: left.at, text: t, args: []*node{left, right}}
	}
	return n, err
}

func (p *parser) signed() (*node, error) {
	p.peek()
	at := p.at
	switch p.skip("+", "-") {
	case "+":
		return p.nested(p.signed)
	case "-":
		n, err := p.nested(p.signed)
		return &node{kind: operator, at: at, text: "negate", args: []*node{n}}, err
	}
	return p.power()
}

func (p *parser) power() (*node, error) {
	base, err := p.value()
	if err != nil || p.skip("**") == "" {
		return base, err
	}
	exponent, err := p.nested(p.signed)
	return &node{kind: operator, at: base.at, text: "**", args: []*node{base, exponent}}, err
}

// value reads a number, a field, a call or something in parentheses.
func (p *parser) value() (*node, error) {
	t := p.peek()
	at := p.at
	switch {
	case p.skip("(") != "":
		n, err := p.nested(p.comparison)
		if err == nil && p.skip(")") == "" {
			err = p.unexpected(")")
		}
		return n, err
	case t == "" || !isWord(t[0]) && t[0] != '.':
		return nil, p.unexpected("a number or a field")
	case isDigit(t[0]) || t[0] == '.':
		return p.number(t)
	case strings.Contains(t, "."):
		return nil, p.failf("%s is not the name of a field; select(rename=) gives it one of letters, digits and _", t)
	case slices.Contains(reserved, t):
		return nil, p.failf("%s is a word of Python, and not a field; where(a > 0, b, 0) is a condition", t)
	}
	p.at += len(t)
	if p.skip("(") != "" {
		return p.call(t, at)
	}
	i := slices.Index(p.names, t)
	if i < 0 {
		i, p.names, p.columns = len(p.names), append(p.names, t), append(p.columns, at+1)
	}
	return &node{kind: field, at: at, text: t, index: i}, nil
}

// number reads a number as Python and JSON write it.
func (p *parser) number(t string) (*node, error) {
	x, err := strconv.ParseFloat(t, 64)
	digits := strings.Trim(t, "0123456789") == ""
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, p.failf("%s is too large for float64", t)
	case err != nil || strings.Trim(t, "0123456789.eE+-") != "" || digits && len(t) > 1 && t[0] == '0':
		return nil, p.failf("%s is not a number", t)
	}
	n := &node{kind: number, at: p.at, value: x}
	p.at += len(t)
	return n, nil
}

// call reads the arguments of a function.
func (p *parser) call(name string, at int) (*node, error) {
	want, known := functions[name]
	if !known {
		return nil, failure{at, fmt.Sprintf("there is no function %s; there are: abs, clip, exp, log, log1p, maximum, "+
			"minimum, sqrt and where", name)}
	}
	n := &node{kind: call, at: at, text: name}
	for p.skip(")") == "" {
		arg, err := p.nested(p.comparison)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
		if p.skip(",") == "" {
			if p.skip(")") == "" {
				return nil, p.unexpected(", or )")
			}
			break
		}
	}
	if len(n.args) != want {
		return nil, failure{at, fmt.Sprintf("%s has %d arguments, and takes %d", name, len(n.args), want)}
	}
	return n, nil
}

// truth reports whether a node is true or false, and not a number.
func (n *node) truth() bool {
	switch n.kind {
	case operator:
		return slices.Contains(comparisons, n.text)
	case call:
		return n.text == "where" && n.args[1].truth() && n.args[2].truth()
	}
	return false
}

// IsTruth reports whether the results are true or false: those of a comparison.
func (f *Formula) IsTruth() bool { return f.root.truth() }
