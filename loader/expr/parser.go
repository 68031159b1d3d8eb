package expr

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// kindOfNode says what a node of the tree of an expression is.
type kindOfNode int

const (
	literal   kindOfNode = iota // value
	fieldNode                   // text, the name; args are indices, nil for all elements
	call                        // text, the function
	operator                    // text: or, and, not, a comparison, in, + - * / **, negate
)

// node is a part of an expression's syntax tree.
type node struct {
	kind kindOfNode
	at   int
	text string
	args []*node

	value value // of a literal
	index int   // of a field of a Formula: its place in Names
}

const (
	maxText  = 1 << 22 // bytes of an expression; only the list after "in" gets long
	maxDepth = 200     // of brackets in brackets
	maxChain = 1 << 16 // operators one after the other, which are computed one within the other
)

// parser reads the tokens of an expression by recursive descent. depth limits the recursion, as an
// expression may come from a file.
type parser struct {
	list  []token
	next  int
	depth int
}

func parse(s string) (*node, error) {
	if len(s) > maxText {
		return nil, fmt.Errorf("an expression of %d bytes; it may have %d", len(s), maxText)
	}
	list, err := tokens(s)
	if err != nil {
		return nil, err
	}
	p := &parser{list: list}
	if p.peek().kind == end {
		return nil, failf(0, "the expression is empty; write a condition, such as label = 'cat'")
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, p.unexpected("the end, or and, or or")
	}
	return n, nil
}

func (p *parser) peek() token { return p.list[p.next] }

// take returns the next token.
func (p *parser) take() token {
	t := p.list[p.next]
	if t.kind != end {
		p.next++
	}
	return t
}

// skip takes the next token if it is the given word or symbol.
func (p *parser) skip(s string) bool {
	if !p.peek().is(s) {
		return false
	}
	p.next++
	return true
}

func (p *parser) expect(s, where string) error {
	if p.skip(s) {
		return nil
	}
	return p.unexpected(s + where)
}

func (p *parser) unexpected(wanted string) error {
	return failf(p.peek().at, "%s was expected, not %s", wanted, p.peek().describe())
}

// nested reads a part of an expression that may contain other parts, and limits how deep they are
// nested.
func (p *parser) nested(read func() (*node, error)) (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, failf(p.peek().at, "the expression is nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	return read()
}

// or reads conditions that are joined by "or".
func (p *parser) or() (*node, error) { return p.chain(p.and, "or") }

func (p *parser) and() (*node, error) { return p.chain(p.not, "and") }

func (p *parser) not() (*node, error) {
	if t := p.peek(); p.skip("not") {
		n, err := p.nested(p.not)
		return &node{kind: operator, at: t.at, text: "not", args: []*node{n}}, err
	}
	return p.comparison()
}

// chain reads parts with operators between them, from left to right.
func (p *parser) chain(part func() (*node, error), operators ...string) (*node, error) {
	n, err := part()
	for length := 0; err == nil && slices.ContainsFunc(operators, p.peek().is); length++ {
		if length == maxChain {
			return nil, failf(p.peek().at, "more than %d operators one after the other", maxChain)
		}
		t, right := p.take(), (*node)(nil)
		right, err = part()
		n = &node{kind: operator, at: t.at, text: t.text, args: []*node{n, right}}
	}
	return n, err
}

var comparisons = []string{"=", "!=", "<", "<=", ">", ">="}

// comparison reads a comparison, "in" or "between", or a single value.
func (p *parser) comparison() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	negated := t.is("not") && p.next+1 < len(p.list) && (p.list[p.next+1].is("in") || p.list[p.next+1].is("between"))
	if negated {
		p.take()
	}
	var n *node
	switch {
	case p.skip("in"):
		n, err = p.in(left, t.at)
	case p.skip("between"):
		n, err = p.between(left, t.at)
	case slices.ContainsFunc(comparisons, t.is):
		p.take()
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(comparisons, p.peek().is) {
			return nil, failf(p.peek().at, "a comparison cannot go on; write a < b and b < c")
		}
		return &node{kind: operator, at: t.at, text: t.text, args: []*node{left, right}}, nil
	default:
		return left, nil
	}
	if negated {
		n = &node{kind: operator, at: t.at, text: "not", args: []*node{n}}
	}
	return n, err
}

// in reads the list after "in".
func (p *parser) in(left *node, at int) (*node, error) {
	closing := ")"
	if !p.skip("(") {
		if !p.skip("[") {
			return nil, p.unexpected("a list such as (1, 2)")
		}
		closing = "]"
	}
	n := &node{kind: operator, at: at, text: "in", args: []*node{left}}
	if p.skip(closing) {
		return n, nil
	}
	for {
		value, err := p.sum()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, value)
		if p.skip(closing) {
			return n, nil
		}
		if err := p.expect(",", " or "+closing); err != nil {
			return nil, err
		}
		if p.skip(closing) {
			return n, nil
		}
	}
}

// between reads the bounds after "between".
func (p *parser) between(left *node, at int) (*node, error) {
	low, err := p.sum()
	if err != nil {
		return nil, err
	}
	if err := p.expect("and", ", as in between 1 and 2,"); err != nil {
		return nil, err
	}
	high, err := p.sum()
	from := &node{kind: operator, at: at, text: ">=", args: []*node{left, low}}
	to := &node{kind: operator, at: at, text: "<=", args: []*node{left, high}}
	return &node{kind: operator, at: at, text: "and", args: []*node{from, to}}, err
}

func (p *parser) sum() (*node, error) { return p.chain(p.product, "+", "-") }

func (p *parser) product() (*node, error) { return p.chain(p.signed, "*", "/") }

func (p *parser) signed() (*node, error) {
	t := p.peek()
	if p.skip("+") {
		return p.nested(p.signed)
	}
	if !p.skip("-") {
		return p.power()
	}
	n, err := p.nested(p.signed)
	return &node{kind: operator, at: t.at, text: "negate", args: []*node{n}}, err
}

// power reads a value and the exponent after it. The exponent binds tighter than a sign before the
// value, as in Python.
func (p *parser) power() (*node, error) {
	base, err := p.value()
	t := p.peek()
	if err != nil || !p.skip("**") {
		return base, err
	}
	exponent, err := p.nested(p.signed)
	return &node{kind: operator, at: t.at, text: "**", args: []*node{base, exponent}}, err
}

// value reads a literal, a field, a call or an expression in parentheses.
func (p *parser) value() (*node, error) {
	t := p.peek()
	switch {
	case p.skip("("):
		n, err := p.nested(p.or)
		if err == nil {
			err = p.expect(")", "")
		}
		return n, err
	case p.skip("true"), p.skip("false"):
		return &node{at: t.at, value: value{kind: truthKind, truth: t.text == "true"}}, nil
	case p.skip("nan"):
		return &node{at: t.at, value: value{kind: floatKind, float: math.NaN()}}, nil
	case p.skip("inf"):
		return &node{at: t.at, value: value{kind: floatKind, float: math.Inf(1)}}, nil
	case t.kind == text:
		p.take()
		return &node{at: t.at, value: value{kind: textKind, text: t.text}}, nil
	case t.kind == number:
		p.take()
		return numberNode(t)
	case t.kind == name || t.kind == quotedName:
		p.take()
		if t.kind == name && p.peek().is("(") {
			return p.call(t)
		}
		return p.field(t)
	}
	return nil, p.unexpected("a value")
}

// numberNode returns the literal of a number. A whole number beyond 64 bits becomes the nearest
// float, which is larger than every integer, too.
func numberNode(t token) (*node, error) {
	n := &node{at: t.at}
	if whole, err := strconv.ParseUint(t.text, 10, 64); err == nil {
		n.value = value{kind: integerKind, bits: whole}
		if whole > math.MaxInt64 {
			n.value.kind = unsignedKind
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(t.text, 64)
	plain := strings.Trim(t.text, "0123456789.eE+-") == ""
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, failf(t.at, "%.100s is too large for 64 bits", t.text)
	case err != nil || !plain:
		return nil, failf(t.at, "%s is not a number", t.text)
	}
	n.value = value{kind: floatKind, float: f}
	return n, nil
}

// call reads the arguments of a function.
func (p *parser) call(t token) (*node, error) {
	n := &node{kind: call, at: t.at, text: t.text}
	p.take()
	if p.skip(")") {
		return n, nil
	}
	for {
		arg, err := p.nested(p.or)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
		if p.skip(")") {
			return n, nil
		}
		if err := p.expect(",", " or )"); err != nil {
			return nil, err
		}
		if p.skip(")") {
			return n, nil
		}
	}
}

// field reads the indices after a field: box[0], m[1, 2], boxes[:, 2].
func (p *parser) field(t token) (*node, error) {
	n := &node{kind: fieldNode, at: t.at, text: t.text}
	if !p.skip("[") {
		return n, nil
	}
	for {
		index, err := p.index()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, index)
		if p.skip("]") {
			break
		}
		if err := p.expect(",", " or ]"); err != nil {
			return nil, err
		}
	}
	if p.peek().is("[") {
		return nil, failf(p.peek().at, "indices are in one pair of brackets: %s[1, 2]", t.text)
	}
	return n, nil
}

// index reads a whole number, or ":", for which it returns nil.
func (p *parser) index() (*node, error) {
	if p.skip(":") {
		return nil, nil
	}
	negative := p.skip("-")
	t := p.peek()
	i, err := strconv.ParseInt(t.text, 10, 32)
	if t.kind != number || err != nil {
		return nil, p.unexpected("a whole number, or :,")
	}
	p.take()
	if negative {
		i = -i
	}
	return &node{at: t.at, value: value{kind: integerKind, bits: uint64(i)}}, nil
}
