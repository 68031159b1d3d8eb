package expr

import (
	"errors"
	"fmt"
	"slices"
)

// Formula is an expression that computes numbers from the numbers of fields, element by element:
//
//	(nir - red) / (nir + red)
//
// It has all operators of the language, and the functions sqrt, exp, log, log1p, abs, minimum, maximum, where and clip,
// each with NumPy's results. Conditions are 1 or 0, and a number that is not 0 is true, as NumPy has it.
type Formula struct {
	Names []string // the fields that it reads, each once, in the order of the text
	text  string
	root  *node
	at    []int // where each of Names comes first
}

// arity is the number of arguments of each function that formulas have.
var arity = map[string]int{
	"sqrt": 1, "exp": 1, "log": 1, "log1p": 1, "abs": 1, "minimum": 2, "maximum": 2, "where": 3, "clip": 3,
}

// ParseFormula reads an expression. An error of a place in it is an [*Error].
func ParseFormula(text string) (*Formula, error) {
	root, err := parse(text)
	f := &Formula{text: text, root: root}
	if err == nil {
		err = f.check(root)
	}
	switch {
	case err != nil:
	case len(f.Names) == 0:
		err = errors.New("it names no field")
	case root.depth() > mostNested:
		err = fmt.Errorf("more than %d operations in each other; derive it in two steps", mostNested)
	}
	if err != nil {
		return nil, explain(err, "", text)
	}
	return f, nil
}

// mostNested limits how deeply operations are nested, and so how many arrays an Evaluator holds at
// a time.
const mostNested = 100

func (n *node) depth() (d int) {
	for _, a := range n.args {
		d = max(d, a.depth())
	}
	return d + 1
}

// check refuses what formulas do not have, and collects the fields.
func (f *Formula) check(n *node) error {
	switch n.kind {
	case literal:
		if n.value.kind == textKind {
			return failf(n.at, "a text is not a number, and a formula computes numbers")
		}
	case fieldNode:
		if n.args != nil {
			return failf(n.at, "a formula computes with all elements of %s; indices are for filters", n.text)
		}
		if n.index = slices.Index(f.Names, n.text); n.index < 0 {
			n.index, f.Names, f.at = len(f.Names), append(f.Names, n.text), append(f.at, n.at)
		}
	case call:
		want, known := arity[n.text]
		switch {
		case !known:
			return failf(n.at, "there is no function %s of formulas; there are: abs, clip, exp, log, log1p, maximum, "+
				"minimum, sqrt and where", n.text)
		case len(n.args) != want:
			return failf(n.at, "%s has %d arguments, and takes %d", n.text, len(n.args), want)
		}
	}
	for _, a := range n.args {
		if err := f.check(a); err != nil {
			return err
		}
	}
	return nil
}

// IsTruth reports whether the results are true or false instead of numbers.
func (f *Formula) IsTruth() bool { return f.root.truth() }

// conditions are the operators that return true or false.
var conditions = append([]string{"and", "or", "not", "in"}, comparisons...)

func (n *node) truth() bool {
	switch n.kind {
	case literal:
		return n.value.kind == truthKind
	case operator:
		return slices.Contains(conditions, n.text)
	case call:
		return n.text == "where" && n.args[1].truth() && n.args[2].truth()
	}
	return false
}

// NoField returns the error that the field Names[k] does not exist among fields.
func (f *Formula) NoField(k int, fields string) error {
	return explain(failf(f.at[k], "there is no field %q; there are: %s", f.Names[k], fields), "", f.text)
}
