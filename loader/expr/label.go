package expr

import (
	"slices"

	"github.com/penstock/penstock/internal/suggest"
)

func noClass(at int, name string, classes []string) error {
	return failf(at, "there is no class %q%s", name, suggest.Hint(name, classes))
}

// answers is a condition's result for each class of a label, and for numbers without a class. A
// condition on text is computed once per class, and looked up for each record.
type answers struct {
	classes []bool
	other   bool
}

// lookup returns an expression that looks up the answer for each label.
func lookup(n *node, of expression, a answers) expression {
	table, other := a.classes, a.other
	return mapped(n.at, of, func(b *block, x column) []bool {
		out := b.truths.take(len(x.integers))
		for i, v := range x.integers {
			if uint64(v) < uint64(len(table)) {
				out[i] = table[v]
			} else {
				out[i] = other
			}
		}
		return out
	})
}

// compareLabel compares the class names of a label with a text. A number without a class has the
// name "". For = and !=, a text that is not the name of a class is an error: most often it is
// misspelt.
func compareLabel(n *node, of expression, name string, at int, r relation) (expression, error) {
	if ordered := r[below] != r[above]; !ordered && name != "" && !slices.Contains(of.classes, name) {
		return of, noClass(at, name, of.classes)
	}
	table := make([]bool, len(of.classes))
	for i, class := range of.classes {
		table[i] = r[orderOf(class, name)]
	}
	return lookup(n, of, answers{table, r[orderOf("", name)]}), nil
}

func orderOf(a, b string) uint8 {
	switch {
	case a < b:
		return below
	case a > b:
		return above
	}
	return equal
}

// named returns a label as text. Numbers without a class have the name "".
func named(of expression) (expression, error) {
	if of.list {
		return of, failf(of.at, "a list of labels is compared with one name: any(x = 'name')")
	}
	classes := of.classes
	e := expression{kindType: kindType{kind: textKind}, at: of.at}
	e.of = func(b *block, active []bool) (column, error) {
		x, err := of.of(b, active)
		if err != nil {
			return x, err
		}
		t := texts{b.bytes.take(0), b.integers.take(len(x.integers) + 1)}
		t.offsets[0] = 0
		for i, v := range x.integers {
			if uint64(v) < uint64(len(classes)) {
				t.data = append(t.data, classes[v]...)
			}
			t.offsets[i+1] = int64(len(t.data))
		}
		return column{one: x.one, texts: t}, nil
	}
	return e, nil
}
