package loader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms/geometry"
)

// fields returns what a batch is made of, or everything that is wrong with it.
func (o Options) fields(src Source) ([]fill.Field, error) {
	picked, err := o.pick(src.Specs())
	if err != nil {
		return nil, err
	}
	var errs []error
	var out []fill.Field
	_, ragged := src.(RaggedSource)
	for _, spec := range picked {
		if spec.Ragged && !ragged {
			errs = append(errs, fmt.Errorf("field %q: its records have lengths of their own, and the Source has no SliceRagged, Lengths and GatherRagged", spec.Name))
		}
		f, err := o.field(spec)
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Transforms)) {
		if !slices.ContainsFunc(picked, func(s tensor.Spec) bool { return s.Name == name }) {
			errs = append(errs, fmt.Errorf("there is a Transform for the field %q, which batches do not have", name))
		}
	}
	errs = append(errs, o.checkGeometry(out))
	out, err = o.Collate.add(out)
	return out, errors.Join(append(errs, err)...)
}

// words are what errors of geometry call the options.
var words = geometry.Words{
	Independent: "name it in Independent: %q", Pipelines: "an Images for each in Transforms", Instead: "move images and boxes by a Collate of your own",
}

// checkGeometry refuses to move images away from what lies on them.
func (o Options) checkGeometry(fields []fill.Field) error {
	var list []geometry.Field
	for _, f := range fields {
		g := geometry.Field{Spec: f.In}
		if t, ok := o.Transforms[f.In.Name].(Images); ok {
			if g.Pipeline = t.Pipeline; g.Spec.Layout == "" && len(g.Spec.Shape) == 3 {
				g.Spec.Layout = strings.ToUpper(t.Layout.String())
			}
		}
		list = append(list, g)
	}
	for _, name := range o.Independent {
		if !slices.ContainsFunc(fields, func(f fill.Field) bool { return f.In.Name == name }) {
			return fmt.Errorf("Independent names the field %q, which batches do not have", name)
		}
	}
	return geometry.Check(list, o.Independent, words)
}

// field returns what becomes of one field of the Source.
func (o Options) field(spec tensor.Spec) (fill.Field, error) {
	t := o.Transforms[spec.Name]
	f := fill.Field{In: spec, Out: spec, Stored: spec.RecordBytes(), Converts: t != nil}
	if err := spec.Validate(); err != nil {
		return f, fmt.Errorf("source: %w", err)
	}
	if t != nil {
		out, err := t.Output(spec)
		if err == nil {
			err = out.Validate()
		}
		if err != nil {
			return f, fmt.Errorf("field %q: transform: %w", spec.Name, err)
		}
		f.Out = out
	}
	if f.Out.Ragged {
		f.Ragged = true
		return f, o.validateRagged(spec)
	}
	f.Size = f.Out.RecordBytes()
	return f, nil
}

// validateRagged reports what cannot be done with records of different lengths.
func (o Options) validateRagged(spec tensor.Spec) error {
	if o.OnError == Blank {
		return fmt.Errorf("field %q: OnError Blank has no length for a record of variable length; take Backfill, or transform by Pad", spec.Name)
	}
	return nil
}

// pick returns the fields that o names.
func (o Options) pick(all []tensor.Spec) ([]tensor.Spec, error) {
	var errs []error
	picked := all
	if len(o.Fields) > 0 {
		picked = nil
	}
	for i, name := range o.Fields {
		at := slices.IndexFunc(all, func(s tensor.Spec) bool { return s.Name == name })
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("the source has no field %q; it has %s", name, names(all)))
		case slices.Contains(o.Fields[:i], name):
			errs = append(errs, fmt.Errorf("field %q is named twice", name))
		default:
			picked = append(picked, all[at])
		}
	}
	if len(all) == 0 {
		errs = append(errs, errors.New("the source has no fields"))
	}
	return picked, errors.Join(errs...)
}

// stride returns the bytes of a batch in the ring, or that they are too many.
func (o Options) stride(fields []fill.Field) (int, error) {
	stride := 0
	for _, f := range fields {
		if f.Size > (maxRing/o.mostSlots()-stride)/o.BatchSize {
			return 0, fmt.Errorf("BatchSize %d: %d batches of %d fields are more than 16 TiB; lower BatchSize, Prefetch or Workers",
				o.BatchSize, o.mostSlots(), len(fields))
		}
		stride += memory.WholePages(o.BatchSize * f.Size)
	}
	return stride, nil
}

// sizes returns the bytes of each field in a batch; none of those that have lengths of their own.
func (o Options) sizes(fields []fill.Field) []int {
	out := make([]int, len(fields))
	for i, f := range fields {
		out[i] = o.BatchSize * f.Size
	}
	return out
}

func names(specs []tensor.Spec) string {
	out := make([]string, len(specs))
	for i, s := range specs {
		out[i] = s.Name
	}
	return fmt.Sprintf("%q", out)
}
