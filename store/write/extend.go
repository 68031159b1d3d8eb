package write

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// Extend returns the schema of the dataset with manifest m after records of schema are appended to it in the given
// splits, or an error that says why they cannot be. The lists of classes and of splits may be longer than the
// dataset's, if they begin alike: stored numbers keep their meaning.
func Extend(m *store.Manifest, schema store.Schema, splits []string) (store.Schema, error) {
	var errs []error
	was, is := namesInOrder(m.Fields), namesInOrder(schema.Fields)
	missing, extra := without(was, is), without(is, was)
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("they do not have its fields %q", missing))
	}
	if len(extra) > 0 {
		errs = append(errs, fmt.Errorf("it does not have their fields %q", extra))
	}
	out := store.Schema{}
	if len(missing)+len(extra) == 0 && !slices.Equal(was, is) {
		errs = append(errs, fmt.Errorf("its fields are %q, in this order, and not %q", was, is))
	}
	for i, f := range schema.Fields {
		if i < len(m.Fields) && slices.Equal(was, is) {
			old := m.Fields[i]
			errs = append(errs, extend(old, f))
			old.Classes = f.Classes
			out.Fields = append(out.Fields, old)
		}
	}
	names := m.SplitNames()
	if len(names) > len(splits) || !slices.Equal(names, splits[:len(names)]) || len(names) == 0 && len(splits) > 0 {
		errs = append(errs, fmt.Errorf("its splits are %q, and not %q", names, splits))
	}
	if len(m.BuilderState) == 0 {
		errs = append(errs, errors.New("its manifest has no ledger to go on from"))
	}
	if err := errors.Join(errs...); err != nil {
		return store.Schema{}, fmt.Errorf("these records cannot be appended to it: %w", err)
	}
	return out, nil
}

// namesInOrder returns the names of fields, in order.
func namesInOrder(fields []store.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// without returns the names of a list that are not in another list.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// extend returns why values of f cannot be appended to values of old; nil if they can. Readers normalize a field in one
// way for all records, so a field without a normalization takes over the normalization of old.
func extend(old, f store.Field) error {
	if len(old.Classes) > 0 && len(f.Classes) == 0 {
		return fmt.Errorf("field %q has the classes %s, and the new records have numbers without classes", old.Name,
			shorten(fmt.Sprintf("%q", old.Classes), 0))
	}
	if len(old.Classes) > len(f.Classes) || !slices.Equal(old.Classes, f.Classes[:len(old.Classes)]) {
		return fmt.Errorf("field %q has the classes %s, which the new ones do not begin with", old.Name,
			shorten(fmt.Sprintf("%q", old.Classes), 0))
	}
	f.Classes = old.Classes
	if f.Normalization == nil {
		f.Normalization = old.Normalization
	}
	if was, is := compact([]store.Field{old}), compact([]store.Field{f}); was != is {
		if brief(old) != brief(f) {
			was, is = brief(old), brief(f)
		}
		return fmt.Errorf("field %q is %s, and not %s (how it was made: %s)", old.Name, shorten(was, 0), shorten(is, 0),
			shell.Penstock("inspect show --recipe"))
	}
	return nil
}

// brief describes a field in messages, without its name.
func brief(f store.Field) string {
	return strings.TrimSpace(fmt.Sprintf("%v %v %v", f.DType, f.Shape, f.Layout))
}
