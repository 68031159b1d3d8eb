package expr

import (
	"context"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// sourceName is the name by which an expression compares the source names of records. A Source
// may know source names without having a field of that name.
const sourceName = "source_name"

// compiler turns the nodes of an expression into functions over columns, for the fields of one
// Source.
type compiler struct {
	ctx context.Context
	src source

	compile func(n *node) (expression, error) // of any kind: a part asks for the parts that it has
}

func (c *compiler) all(nodes []*node) (list []expression, err error) {
	for _, n := range nodes {
		e, err := c.compile(n)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// spec returns the named field, or an empty Spec for source names that are not a field.
func (c *compiler) spec(n *node) (tensor.Spec, error) {
	specs := c.src.Specs()
	if i := slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == n.text }); i >= 0 {
		if specs[i].Ragged && c.src.can.Ragged == nil {
			return tensor.Spec{}, failf(n.at,
				"%s has records of variable length, and the Source is not a loader.RaggedSource", n.text)
		}
		return specs[i], nil
	}
	if n.text == sourceName && c.src.can.Named != nil {
		return tensor.Spec{}, nil
	}
	names := make([]string, len(specs))
	for i := range specs {
		names[i] = specs[i].Name
	}
	return tensor.Spec{}, failf(n.at, "there is no field %q%s", n.text, suggest.Hint(n.text, names))
}
