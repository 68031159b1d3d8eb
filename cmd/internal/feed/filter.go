package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/loader"
	expression "github.com/penstock/penstock/loader/filter"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// filter keeps the records whose number in a field compares with some values in one way, exactly: see
// [bound]. Its JSON is [field, op, [value, ...]].
type filter struct {
	field  string
	op     string
	values []json.RawMessage // numbers, names of classes, or {"float": "nan"}, "inf" or "-inf"
}

// UnmarshalJSON reads a list of three.
func (f *filter) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) != 3 {
		return fmt.Errorf("a filter of %d parts; it is [field, op, values]", len(parts))
	}
	return errors.Join(json.Unmarshal(parts[0], &f.field), json.Unmarshal(parts[1], &f.op),
		json.Unmarshal(parts[2], &f.values))
}

// MarshalJSON writes a list of three.
func (f filter) MarshalJSON() ([]byte, error) { return json.Marshal([]any{f.field, f.op, f.values}) }

// keep returns the records that all filters keep; nil if there are none of those.
func (o *Options) keep(ctx context.Context, src loader.Source, fields []store.Field) ([]int, error) {
	if len(o.Filters) == 0 && o.Where == "" {
		return nil, nil
	}
	kept := make([]bool, src.Len())
	for i := range kept {
		kept[i] = true
	}
	if o.Where != "" {
		set, err := expression.Find(ctx, src, o.Where)
		if err != nil {
			return nil, err
		}
		for i := range kept {
			kept[i] = set.Has(i)
		}
	}
	for _, f := range o.Filters {
		if err := f.apply(src, fields, kept); err != nil {
			return nil, fmt.Errorf("filter on %q: %w", f.field, err)
		}
	}
	out := []int{}
	for i, k := range kept {
		if k {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the filters keep none of %d records", len(kept))
	}
	return out, nil
}

// apply clears kept where the filter does not hold.
func (f filter) apply(src loader.Source, fields []store.Field, kept []bool) error {
	test, err := f.resolve(fields)
	if err != nil {
		return err
	}
	if err := src.Retain(); err != nil {
		return err
	}
	defer src.Release()
	const step = 1 << 16
	for first := 0; first < len(kept); first += step {
		v, err := src.Slice(f.field, first, min(first+step, len(kept)))
		if err != nil {
			return err
		}
		test(v, kept[first:first+v.Len()])
	}
	return nil
}

// resolve returns what clears kept for the records of a View where the filter does not hold.
func (f filter) resolve(fields []store.Field) (test func(v tensor.View, kept []bool), err error) {
	at := slices.IndexFunc(fields, func(g store.Field) bool { return g.Name == f.field })
	if at < 0 {
		names := make([]string, len(fields))
		for i := range fields {
			names[i] = fields[i].Name
		}
		return nil, fmt.Errorf("there is no such field%s", suggest.Hint(f.field, names))
	}
	g := fields[at]
	if g.Ragged || len(g.Shape) > 0 {
		return nil, fmt.Errorf("its records are %v%v; filters are on single numbers", g.DType, g.Shape)
	}
	if _, ok := relations[f.op]; !ok {
		return nil, fmt.Errorf("there is no comparison %q; take ==, !=, <, <=, >, >=, in or not in", f.op)
	}
	if several := f.op == "in" || f.op == "not in"; !several && len(f.values) != 1 {
		return nil, fmt.Errorf("%q takes one value, not %d", f.op, len(f.values))
	}
	values := make([]value, len(f.values))
	for i, text := range f.values {
		if values[i], err = valueOf(text, g.Classes); err != nil {
			return nil, err
		}
	}
	return testOf(g.DType, f.op, values)
}
