package expr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
)

// newCompiler returns the compiler of expressions on a Source.
func newCompiler(ctx context.Context, src source) *compiler {
	c := &compiler{ctx: ctx, src: src}
	c.compile = c.expression
	return c
}

// condition compiles a whole filter, which must be true or false for each record.
func (c *compiler) condition(n *node) (expression, error) {
	e, err := c.compile(n)
	if err == nil {
		err = wantTruth(e)
	}
	if err == nil && e.list {
		err = failf(e.at, "this is a list of values a record; write any(...) or all(...) around it")
	}
	return e, err
}

// expression compiles a node and returns its expression.
func (c *compiler) expression(n *node) (expression, error) {
	switch n.kind {
	case literal:
		return constantOf(n.at, n.value), nil
	case fieldNode:
		return c.field(n)
	case call:
		return c.call(n)
	}
	switch n.text {
	case "in":
		return c.in(n)
	case "negate":
		return c.negate(n)
	}
	args, err := c.all(n.args)
	if err != nil {
		return expression{}, err
	}
	switch n.text {
	case "and", "or":
		return junction(n, args[0], args[1])
	case "not":
		return negation(n, args[0])
	case "+", "-", "*", "/", "**":
		return arithmetic(n, args[0], args[1])
	}
	return comparison(n, args[0], args[1])
}

// negate returns the negative of a number. A literal is negated as such: the smallest integer has
// no positive counterpart in 64 bits.
func (c *compiler) negate(n *node) (expression, error) {
	if v := n.args[0].value; n.args[0].kind == literal && v.kind == unsignedKind && v.bits == 1<<63 {
		return constantOf(n.at, value{kind: integerKind, bits: 1 << 63}), nil // the smallest integer
	} else if n.args[0].kind == literal && v.kind == unsignedKind { // below it
		below := min(-float64(v.bits), math.Nextafter(-1<<63, math.Inf(-1)))
		return constantOf(n.at, value{kind: floatKind, float: below}), nil
	}
	e, err := c.compile(n.args[0])
	if err != nil {
		return e, err
	}
	if e.kind == floatKind {
		return arithmetic(n, constantOf(n.at, value{kind: floatKind, float: -1}), e, "*")
	}
	return arithmetic(n, constantOf(n.at, value{kind: integerKind}), e, "-")
}

// function is a function of the language.
type function struct {
	name        string
	least, most int    // arguments
	usage       string // for errors
	compile     func(c *compiler, n *node) (expression, error)
}

// functions are the functions of the language.
var functions = []function{
	{"len", 1, 1, "len(field)", (*compiler).length},
	{"is_empty", 1, 1, "is_empty(field)", (*compiler).isEmpty},
	{"is_nan", 1, 1, "is_nan(number)", (*compiler).isNaN},
	{"starts_with", 2, 2, "starts_with(text, 'start')", (*compiler).textTest},
	{"ends_with", 2, 2, "ends_with(text, 'end')", (*compiler).textTest},
	{"contains", 2, 2, "contains(text, 'part')", (*compiler).textTest},
	{"matches", 2, 2, "matches(text, 'expression')", (*compiler).textTest},
	{"min", 1, 1, "min(values)", (*compiler).reduction},
	{"max", 1, 1, "max(values)", (*compiler).reduction},
	{"mean", 1, 1, "mean(values)", (*compiler).reduction},
	{"any", 1, 1, "any(values > 0)", (*compiler).quantifier},
	{"all", 1, 1, "all(values > 0)", (*compiler).quantifier},
	{"abs", 1, 1, "abs(number)", (*compiler).elementwise},
	{"sqrt", 1, 1, "sqrt(number)", (*compiler).elementwise},
	{"exp", 1, 1, "exp(number)", (*compiler).elementwise},
	{"log", 1, 1, "log(number)", (*compiler).elementwise},
	{"log1p", 1, 1, "log1p(number)", (*compiler).elementwise},
	{"minimum", 2, 2, "minimum(number, number)", (*compiler).elementwise},
	{"maximum", 2, 2, "maximum(number, number)", (*compiler).elementwise},
	{"clip", 3, 3, "clip(number, low, high)", (*compiler).clipped},
	{"where", 3, 3, "where(condition, number, number)", (*compiler).where},
	{"sample", 1, 3, "sample(fraction, seed)", (*compiler).sample},
}

// call compiles a call of a function.
func (c *compiler) call(n *node) (expression, error) {
	i := slices.IndexFunc(functions, func(f function) bool { return f.name == n.text })
	if i < 0 {
		names := make([]string, len(functions))
		for k, f := range functions {
			names[k] = f.name
		}
		if best := suggest.Closest(strings.ToLower(n.text), names); best != "" {
			return expression{}, failf(n.at, "there is no function %q; did you mean %s?", n.text, best)
		}
		return expression{}, failf(n.at, "there is no function %q; there are: %s", n.text, strings.Join(names, ", "))
	}
	f := functions[i]
	if len(n.args) < f.least || len(n.args) > f.most {
		wanted := fmt.Sprintf("%d arguments", f.least)
		if f.least == 1 {
			wanted = "1 argument"
		}
		return expression{}, failf(n.at, "%s takes %s, not %d: write %s", f.name, wanted, len(n.args), f.usage)
	}
	return f.compile(c, n)
}
