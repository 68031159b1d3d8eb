package field

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// withStandardize returns a recipe, which may be nil, with the entry t at its end.
func withStandardize(recipe json.RawMessage, t transforms.Standardize) (json.RawMessage, error) {
	var ts []json.RawMessage
	if recipe != nil {
		if err := json.Unmarshal(recipe, &ts); err != nil {
			return nil, err
		}
	}
	p, err := transforms.ComposeArray(t)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var own []json.RawMessage
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	return json.Marshal(append(ts, own...))
}

// spread returns how many pairs of mean and deviation a field has, the axis that they are along, and the number of
// elements at each position of that axis. A vector has a pair for each element, any other array one pair, unless an
// axis was asked for.
func spread(s tensor.Spec, want NormalizedField) (n, axis, inner int) {
	switch {
	case want.Set:
		return s.Shape[want.Axis], want.Axis, s.Shape[want.Axis+1:].Elems()
	case len(s.Shape) == 1:
		return s.Shape[0], 0, 1
	}
	return 1, 0, s.Shape.Elems()
}

// Measures returns the accumulators of the fields that are standardized by their own mean and deviation: the fields
// of --normalize, or else all fields of floats with a fixed size whose names are not names of labels. A field with
// Standardize in its recipe has mean and deviation already.
func (c Options) Measures(jobs []Job, source []source.Field, schema store.Schema) (list []*Moments, err error) {
	if c.Normalize.Fields != nil {
		return c.askedFigures(jobs, source, schema)
	}
	known := false
	for i, f := range schema.Fields {
		switch {
		// Pixels are normalized as images, with mean and std for each channel.
		case standardizes(jobs[i]), layout.PixelBytes(f.Spec):
			known = true
		case f.DType.IsFloat() && !f.Ragged && !column.LabelName(f.Name):
			list = append(list, newMoments(i, f.Spec, NormalizedField{}))
		}
	}
	if len(list) == 0 && !known {
		return nil, errors.New("--normalize dataset: the source has no images and no arrays of floats; the transform Cast " +
			"converts integers to floats, and dataset:FIELD names fields of variable length")
	}
	return list, nil
}

// askedFigures is Measures for the fields that --normalize names, which may be ragged.
func (c Options) askedFigures(jobs []Job, fields []source.Field, schema store.Schema) (list []*Moments, err error) {
	names := source.FieldNames(fields)
	for _, want := range c.Normalize.Fields {
		at := slices.Index(names, want.Field)
		if at < 0 {
			return nil, fmt.Errorf("--normalize %s: there is no field %q%s", c.Normalize, want.Field,
				suggest.Hint(want.Field, names))
		}
		f := schema.Fields[at]
		switch {
		case HasPixels(fields[at]):
			return nil, fmt.Errorf("--normalize %s: %s is of images, which dataset alone is for", c.Normalize, want.Field)
		case !f.DType.IsFloat():
			return nil, fmt.Errorf("--normalize %s: %s is of %v; convert it to floats with the transform Cast", c.Normalize,
				want.Field, f.DType)
		case want.Set && want.Axis >= len(f.Shape):
			return nil, fmt.Errorf("--normalize %s: %s has no axis %d in records of shape %v", c.Normalize, want.Field,
				want.Axis, f.Shape)
		case !standardizes(jobs[at]):
			list = append(list, newMoments(at, f.Spec, want))
		}
	}
	return list, nil
}

// standardizes reports whether the transforms of a job have Standardize.
func standardizes(j Job) bool {
	a, ok := j.(arrayField)
	if !ok {
		return false
	}
	text, err := json.Marshal(a.pipeline)
	return err == nil && strings.Contains(string(text), `"op":"Standardize"`)
}

// HasPixels reports whether a field is images, as files or as pixels.
func HasPixels(f source.Field) bool { return f.Image() || f.Layout != "" && !f.OnImage() }
