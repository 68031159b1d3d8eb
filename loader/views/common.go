package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// Common returns the fields that the records of several datasets have in common. names are the
// datasets' names for messages. All datasets must mean the same by a number: a label by its class,
// an image by its layout and normalization. Otherwise a model would train on mixed meanings without
// any error.
func Common(names []string, fields [][]store.Field) ([]store.Field, error) {
	out := slices.Clone(fields[0])
	for i := range fields {
		if err := agree(out, fields[i]); err != nil {
			return nil, fmt.Errorf("%s and %s cannot be loaded together: %w", shell.Line(names[0]), shell.Line(names[i]), err)
		}
		for k := range out {
			out[k].Spec = out[k].Known(fields[i][k].Spec)
		}
	}
	for k := range out {
		if slices.ContainsFunc(fields, func(of []store.Field) bool {
			return !equal(of[k].Normalization, out[k].Normalization)
		}) {
			out[k].Normalization = nil
		}
	}
	return out, nil
}

// agree returns an error that says how a dataset's fields differ from the first dataset's; nil if
// they are equal.
func agree(first, fields []store.Field) error {
	same := func(f, g store.Field) bool { return f.Name == g.Name }
	if !slices.EqualFunc(first, fields, same) {
		both := slices.DeleteFunc(slices.Clone(first), func(f store.Field) bool {
			return !slices.ContainsFunc(fields, func(g store.Field) bool { return same(f, g) })
		})
		how := ""
		if len(both) > 0 {
			how = fmt.Sprintf(`; name those to load: fields=["%s"]`, namesOf(both, `", "`))
		}
		return fmt.Errorf("the fields are %s there, and %s here%s", namesOf(first, ", "), namesOf(fields, ", "), how)
	}
	for i, f := range first {
		g := fields[i]
		if !slices.Equal(f.Features, g.Features) {
			return fmt.Errorf("the columns of field %q, such as genes, have other names there than here, so that a column is not "+
				"the same one; join files by these names: align=\"intersection\" or align=\"union\"", f.Name)
		}
		if kindOf(f) != kindOf(g) {
			return fmt.Errorf("field %q is %s there, and %s here; preprocess both alike, or leave it out (fields=)", f.Name,
				kindOf(f), kindOf(g))
		}
		if !slices.Equal(f.Classes, g.Classes) {
			return fmt.Errorf("field %q has the classes %s there, and %s here, so that a number is not the same class; "+
				"preprocess both alike, or leave it out (fields=)", f.Name, classes(f), classes(g))
		}
		if how := f.Unlike(g.Spec); how != "" {
			return fmt.Errorf("field %q %s; leave it out (fields=), or if its numbers are alike all the same, make a dataset of "+
				"each, which has no units: penstock preprocess FILE DEST, and load these as a list", f.Name, how)
		}
		if n, m := f.Normalization, g.Normalization; applied(n) != applied(m) || applied(n) && !equal(n, m) {
			return fmt.Errorf("field %q is stored after another normalization, %s there and %s here; preprocess both alike "+
				"(--normalize)", f.Name, figures(n), figures(m))
		}
	}
	return nil
}

func namesOf(fields []store.Field, between string) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.Name
	}
	return strings.Join(list, between)
}

// kindOf describes a field in words, without its classes and normalization.
func kindOf(f store.Field) string {
	words := []string{fmt.Sprintf("%v%v", f.DType, f.Shape)}
	if f.Ragged {
		words = append(words, "of any number of rows")
	}
	words = append(words, f.Content, f.Layout, f.Image, f.Instances)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func classes(f store.Field) string {
	const most = 5
	switch n := len(f.Classes); {
	case n == 0:
		return "[] (none)"
	case n > most:
		return fmt.Sprintf("%q and %d more", f.Classes[:most], n-most)
	}
	return fmt.Sprintf("%q", f.Classes)
}

func applied(n *store.Normalization) bool { return n != nil && n.Applied }

func equal(a, b *store.Normalization) bool {
	return a == b || a != nil && b != nil && a.Applied == b.Applied && a.Scale == b.Scale &&
		slices.Equal(a.Mean, b.Mean) && slices.Equal(a.Std, b.Std)
}

func figures(n *store.Normalization) string {
	if n == nil || !n.Applied {
		return "none"
	}
	return fmt.Sprintf("mean %.4g, std %.4g", n.Mean, n.Std)
}
