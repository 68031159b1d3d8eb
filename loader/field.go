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

// fields returns the fields of a batch. The error joins everything that is wrong with them, so that
// a user corrects all names in one go.
func (o Options) fields(src Source) ([]fill.Field, error) {
	picked, err := o.pick(o.declared(src.Specs()))
	if err != nil {
		return nil, err
	}
	var errs []error
	var out []fill.Field
	_, ragged := src.(RaggedSource)
	for _, spec := range picked {
		if spec.Ragged && !ragged {
			errs = append(errs, fmt.Errorf("field %q: its records have variable length, and the Source has no "+
				"SliceRagged, Lengths and GatherRagged", spec.Name))
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
	for _, name := range slices.Sorted(maps.Keys(o.Contents)) {
		if !slices.ContainsFunc(picked, func(s tensor.Spec) bool { return s.Name == name }) {
			errs = append(errs, fmt.Errorf("Contents names the field %q, which batches do not have", name))
		}
		if !slices.Contains(contents, o.Contents[name]) {
			errs = append(errs, fmt.Errorf("Contents: field %q: %q is none of %s", name, o.Contents[name],
				strings.Join(contents, ", ")))
		}
	}
	groups, err := o.checkGeometry(out)
	if errs = append(errs, err); errors.Join(errs...) == nil {
		if err = o.lead(out, groups); err == nil {
			out, err = o.padded(out)
		}
		errs = append(errs, err)
	}
	for _, f := range out {
		if t, is := o.Transforms[f.In.Name].(Masks); is && !f.Led {
			_, err := t.Output(f.In)
			errs = append(errs, fmt.Errorf("field %q: %w", f.In.Name, err))
		}
	}
	out, err = o.Collate.add(out)
	return out, errors.Join(append(errs, err)...)
}

// Independent in Options.Contents is a field that does not show, or lie on, what other image fields show: vectors of
// four numbers that are not boxes, the picture of another camera. The transforms of other fields do not change it.
const Independent = "independent"

// HWC and CHW in Options.Contents are fields whose records are pixels, (H, W, C) or (C, H, W).
const (
	HWC = "hwc"
	CHW = "chw"
)

// contents are the values of Options.Contents.
var contents = []string{tensor.Mask, tensor.Boxes, tensor.Keypoints, HWC, CHW, Independent}

// declared returns specs with the contents that Options.Contents assigns. Specs belong to the
// Source, so that declared changes a copy.
func (o Options) declared(specs []tensor.Spec) []tensor.Spec {
	if len(o.Contents) == 0 {
		return specs
	}
	specs = slices.Clone(specs)
	for i := range specs {
		switch content := o.Contents[specs[i].Name]; content {
		case "", Independent:
		case HWC, CHW:
			specs[i] = specs[i].AsPixels(strings.ToUpper(content))
		default:
			specs[i].Content = content
		}
	}
	return specs
}

// words are the texts by which errors of package geometry tell a Go program which options to set.
// The Python front end passes texts of its own, because its options have other names.
var words = geometry.Words{
	Independent: "set Contents[%q] to loader.Independent", Pipelines: "an Images for each in Transforms",
	Contents:  "if so, set Contents[%q] to %q",
	Instances: "if so, give the Specs of %q and %q the same Instances",
}

// checkGeometry returns which fields follow which image. It refuses a pipeline that would move an
// image away from boxes, masks or points on it: such a model trains on wrong labels without any
// error.
func (o Options) checkGeometry(fields []fill.Field) ([]geometry.Group, error) {
	var list []geometry.Field
	for _, f := range fields {
		g := geometry.Field{Spec: f.In}
		if t, ok := o.Transforms[f.In.Name].(mover); ok && f.In.Content != tensor.Images {
			g.Pipeline = t.geometry()
			if g.Spec.Layout == "" && len(g.Spec.Shape) == 3 {
				g.Spec.Layout = axes(t.options().Layout)
			}
		}
		list = append(list, g)
	}
	var independent []string
	for name, content := range o.Contents {
		if content == Independent {
			independent = append(independent, name)
		}
	}
	return geometry.Check(list, independent, words)
}

// field returns how one field of the Source is filled.
func (o Options) field(spec tensor.Spec) (fill.Field, error) {
	t := o.own(spec)
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
		if _, ok := grows(t, spec); ok {
			// The function makes records of any length, and leads no other field. An empty Leads
			// that is not nil says so.
			f.Leads = []int{} // it makes records of any length, and no other field
		}
		return f, o.validateRagged(spec)
	}
	f.Size = f.Out.RecordBytes()
	return f, nil
}

// pick returns the specs that Options.Fields names, in that order, or all specs.
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

// stride returns the bytes of a batch in the ring, or an error if all batches together exceed
// maxRing. The division avoids an overflow of the product.
func (o Options) stride(fields []fill.Field) (int, error) {
	stride := 0
	for _, f := range fields {
		if f.Size > (maxRing/o.mostSlots()-stride)/o.BatchSize {
			return 0, fmt.Errorf(
				"BatchSize %d: %d batches of %d fields are more than 16 TiB; lower BatchSize, Prefetch or Workers",
				o.BatchSize, o.mostSlots(), len(fields))
		}
		stride += memory.WholePages(o.BatchSize * f.Size)
	}
	return stride, nil
}

// sizes returns the bytes of each field in a full batch, 0 for fields of variable length.
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
