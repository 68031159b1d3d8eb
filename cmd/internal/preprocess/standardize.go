package preprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// measureArrays runs over the source for the figures of the arrays that --normalize dataset
// speaks of, and makes them transforms of these fields.
func (r *run) measureArrays(ctx context.Context) error {
	c := r.config
	if !c.Normalize.Dataset || c.Normalize.Fields == nil && slices.ContainsFunc(r.info.Fields, ofPixels) {
		return nil
	}
	j, err := r.newJob(ctx, c)
	if err != nil {
		return err
	}
	list, err := c.ownFigures(j)
	if err != nil || len(list) == 0 {
		return err
	}
	if r.base != nil {
		return fmt.Errorf("--append and --normalize dataset: the figures would be those of the new records alone; give those of %s, with the recipe that inspect show --recipe prints: --pipeline FILE", c.Dest)
	}
	err = r.measurePass(ctx, j, func(rec *store.Record) error {
		for _, f := range list {
			f.add(rec.Values[f.at])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.standardize(j, list)
}

// ofPixels reports whether a field is of images.
func ofPixels(f source.Field) bool { return f.Image() || f.Layout != "" }

// standardize enters the figures as transforms.
func (r *run) standardize(j *job, list []*figures) error {
	r.config.standardize = make(map[string]transforms.Standardize)
	for _, f := range list {
		name := j.source[f.at].Name
		t := f.transform()
		if _, err := t.Resolve(); err != nil {
			return fmt.Errorf("--normalize dataset: field %q: %w", name, err)
		}
		r.config.standardize[name] = t
		r.progress.Note(fmt.Sprintf("%s is standardized by its own %s%s\n", name, countFigures(len(t.Mean)), ofSplit(r.config.NormalizeSplit)))
	}
	return nil
}

func countFigures(n int) string {
	if n == 1 {
		return "mean and deviation"
	}
	return fmt.Sprintf("%d means and deviations", n)
}

// ownFigures returns the accumulators of the fields of the dataset that get their own
// figures: those that were asked for, or else all of floats that are not of variable length
// and not called as labels are. A field that a recipe standardizes has its figures.
func (c Config) ownFigures(j *job) (list []*figures, err error) {
	if c.Normalize.Fields != nil {
		return c.askedFigures(j)
	}
	known := false
	for i, f := range j.schema.Fields {
		switch {
		case standardizes(j.fields[i]), store.PixelBytes(f):
			known = true
		case f.DType.IsFloat() && !f.Ragged && !source.LabelName(f.Name):
			list = append(list, newFigures(i, f.Spec, NormalizedField{}))
		}
	}
	if len(list) == 0 && !known {
		return nil, errors.New("--normalize dataset: the source has no images and no arrays of floats; the transform Cast makes floats of integers, and dataset:FIELD names fields of variable length")
	}
	return list, nil
}

func (c Config) askedFigures(j *job) (list []*figures, err error) {
	var names []string
	for _, f := range j.source {
		names = append(names, f.Name)
	}
	for _, want := range c.Normalize.Fields {
		at := slices.Index(names, want.Field)
		if at < 0 {
			return nil, fmt.Errorf("--normalize %s: there is no field %q%s", c.Normalize, want.Field, suggest.Hint(want.Field, names))
		}
		f := j.schema.Fields[at]
		switch {
		case ofPixels(j.source[at]):
			return nil, fmt.Errorf("--normalize %s: %s is of images, which dataset alone is for", c.Normalize, want.Field)
		case !f.DType.IsFloat():
			return nil, fmt.Errorf("--normalize %s: %s is of %v; make floats of it with the transform Cast", c.Normalize, want.Field, f.DType)
		case want.Set && want.Axis >= len(f.Shape):
			return nil, fmt.Errorf("--normalize %s: %s has no axis %d in records of shape %v", c.Normalize, want.Field, want.Axis, f.Shape)
		case !standardizes(j.fields[at]):
			list = append(list, newFigures(at, f.Spec, want))
		}
	}
	return list, nil
}

// standardizes reports whether a job does so.
func standardizes(j fieldJob) bool {
	a, ok := j.(arrayField)
	if !ok {
		return false
	}
	text, err := json.Marshal(a.pipeline)
	return err == nil && strings.Contains(string(text), `"op":"Standardize"`)
}

// refuseOwnFigures is for those who cannot run over the whole source.
func (r *run) refuseOwnFigures(j *job) error {
	c := r.config
	if !c.Normalize.Dataset || c.Normalize.Fields == nil && slices.ContainsFunc(r.info.Fields, ofPixels) {
		return nil
	}
	list, err := c.ownFigures(j)
	if err == nil && len(list) > 0 {
		err = errors.New("--normalize dataset and --rank: the figures of all samples are needed before the first is written; give them as the transform Standardize")
	}
	return err
}

// withStandardize returns a recipe, or none, with one more entry.
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

// spread returns how many figures a field has, the axis that they are along, and how many
// elements lie at one place of it: one for each element of a vector, one for all of anything
// else, unless an axis was asked for.
func spread(s tensor.Spec, want NormalizedField) (n, axis, inner int) {
	switch {
	case want.Set:
		return s.Shape[want.Axis], want.Axis, s.Shape[want.Axis+1:].Elems()
	case len(s.Shape) == 1:
		return s.Shape[0], 0, 1
	}
	return 1, 0, s.Shape.Elems()
}
