package stats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Classes has the class of every record. The zero value stands for a dataset without labels.
type Classes struct {
	field  *store.Field // nil if there are no classes
	Values []Label      // the labels, the smallest first
	Class  []int        // of each record: an index into Values
}

// mostClasses is the number of different values above which a field of integers is taken for
// something other than labels, such as ids, unless it has as many class names.
const mostClasses = 10_000

// ClassesOf reads the labels of all records and finds their classes. Classes of the manifest
// without records are included.
func ClassesOf(ctx context.Context, ds *mmapds.Dataset) (out Classes, err error) {
	field, err := dataset.LabelField(ds, "", "")
	if err != nil || field == nil {
		return out, err
	}
	numbers, err := dataset.ReadLabels(ctx, ds, field)
	if errors.Is(err, dataset.ErrNoLabels) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	counts := make(map[int64]int64)
	for i := range field.Classes {
		counts[int64(i)] = 0
	}
	for _, v := range numbers {
		counts[v]++
		if len(counts) > max(mostClasses, len(field.Classes)) {
			return out, nil
		}
	}
	out.field = field
	for v, n := range counts {
		out.Values = append(out.Values, Label{Value: v, Name: dataset.ClassName(*field, v), Records: n})
	}
	slices.SortFunc(out.Values, func(a, b Label) int { return cmp.Compare(a.Value, b.Value) })
	at := make(map[int64]int, len(out.Values))
	for i, v := range out.Values {
		at[v.Value] = i
	}
	out.Class = dataset.Map(numbers, func(v int64) int { return at[v] })
	return out, nil
}

// Text returns the name of class i or, without a name, the field's name and the value.
func (c *Classes) Text(i int) string {
	if name := c.Values[i].Name; name != "" {
		return name
	}
	return fmt.Sprintf("%s %d", c.field.Name, c.Values[i].Value)
}
