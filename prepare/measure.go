package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// allRecords is the Config.NormalizeSplit that takes mean and deviation over every split.
const allRecords = "all"

// setNormalizeSplit makes Config.NormalizeSplit the split that the dataset's own mean and
// deviation come from, so that the recipe says it. Without splits it is "".
func (r *run) setNormalizeSplit() error {
	c, names := &r.Config, r.splits()
	if !c.Images.Normalize.Dataset || r.collected != nil {
		return nil
	}
	switch want := c.NormalizeSplit; {
	case len(names) == 0 && want != "" && want != allRecords:
		return fmt.Errorf("--normalize-split %s: the dataset has no splits; --split makes them", want)
	case len(names) == 0:
		c.NormalizeSplit = ""
	case want == "":
		c.NormalizeSplit = trainingSplit(names)
		r.info.Hints = append(r.info.Hints,
			fmt.Sprintf("mean and deviation are taken over the split %s; --normalize-split all takes every record",
				c.NormalizeSplit))
	case want != allRecords && !slices.Contains(names, want):
		return fmt.Errorf("--normalize-split %s: there is no such split%s", want,
			suggest.Hint(want, append(names, allRecords)))
	}
	return nil
}

// trainingSplit returns the split whose name is a name of the training split, or else the first split.
func trainingSplit(names []string) string {
	if i := slices.IndexFunc(names, source.TrainingName); i >= 0 {
		return names[i]
	}
	return names[0]
}

// ofSplit says in a note which records were measured.
func ofSplit(split string) string {
	if split == "" || split == allRecords {
		return ""
	}
	return " in the split " + split
}

// measurePass runs over the source and calls add for each record that Config.NormalizeSplit
// names, in order. Splits and duplicates are decided in the same way as when the records are
// written.
func (r *run) measurePass(ctx context.Context, j *execute.Job, add func(*store.Record) error) error {
	r.log = newRunLog(r.Config)
	want, measured := r.NormalizeSplit, false
	err := r.pass(ctx, j, "measuring (1 of 2)",
		r.ahead(j, r.src.Samples()), func(s *execute.Slot) error {
			if repeated, err := r.duplicate(s); repeated {
				return err
			}
			split, err := r.splitOf(j, s)
			if err != nil {
				return err
			}
			if want != "" && want != allRecords && split != want {
				return nil
			}
			measured = true
			return add(s.Record)
		})
	if err == nil && !measured {
		err = fmt.Errorf("--normalize dataset: the split %s has no records to compute mean and deviation of", want)
	}
	r.skip = int64(len(r.log.skipped))
	return err
}

// measureArrays runs over the source for the statistics of the arrays that --normalize dataset
// names, and adds them as transforms of these fields.
func (r *run) measureArrays(ctx context.Context) error {
	if !r.measuresArrays() {
		return nil
	}
	j, err := r.newJob(ctx, r.Images)
	if err != nil {
		return err
	}
	list, err := r.Images.Measures(j.Fields, j.Source, j.Schema)
	if err != nil || len(list) == 0 {
		return err
	}
	if r.base != nil {
		return fmt.Errorf("--append and --normalize dataset: mean and std would describe the new records alone; give "+
			"mean and std of %s, with the recipe that %s prints: --pipeline FILE", r.Dest,
			shell.On("inspect show --recipe", r.Dest))
	}
	err = r.measurePass(ctx, j, func(rec *store.Record) error {
		for _, f := range list {
			f.Add(rec.Values[f.At])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.standardize(j, list)
}

// standardize enters the statistics as transforms.
func (r *run) standardize(j *execute.Job, list []*field.Moments) error {
	r.Images.Own = make(map[string]transforms.Standardize)
	for _, f := range list {
		name := j.Source[f.At].Name
		t := f.Transform()
		if _, err := t.Resolve(); err != nil {
			return fmt.Errorf("--normalize dataset: field %q: %w", name, err)
		}
		r.Images.Own[name] = t
		r.progress.Note(fmt.Sprintf("%s is standardized by its own %s%s\n", name, countFigures(len(t.Mean)),
			ofSplit(r.NormalizeSplit)))
	}
	return nil
}

// needsFigures refuses options that depend on all samples.
func (r *run) needsFigures(j *execute.Job) error {
	if r.measuresPixels() {
		return errFigures
	}
	if !r.measuresArrays() {
		return nil
	}
	list, err := r.Images.Measures(j.Fields, j.Source, j.Schema)
	if err == nil && len(list) > 0 {
		err = errFigures
	}
	return err
}

// measuresArrays reports whether --normalize dataset asks for statistics of arrays.
func (r *run) measuresArrays() bool {
	n := r.Images.Normalize
	return n.Dataset && (n.Fields != nil || !slices.ContainsFunc(r.info.Fields, field.HasPixels))
}

// measuresPixels reports whether the statistics of the images are needed before the dataset is written.
func (r *run) measuresPixels() bool {
	c := r.Images
	return c.Normalize.OfImages() && c.WithImageDefaults().DType != tensor.Uint8 &&
		c.Transforms == nil && slices.ContainsFunc(r.info.Fields, field.HasPixels)
}

// measurePixels runs over the source for the mean and deviation of its pixels as they would be stored in uint8, if they
// are needed.
func (r *run) measurePixels(ctx context.Context) error {
	if !r.measuresPixels() {
		return nil
	}
	stored := r.Images
	stored.DType = tensor.Uint8
	j, err := r.newJob(ctx, stored)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(j.Schema.Fields, func(f store.Field) bool { return f.Layout != "" && !f.OnImage() })
	if at < 0 {
		return errors.New("--normalize dataset: --keep-encoded leaves the images as they are")
	}
	builder, sums := write.NewManifestBuilder(j.Schema), make([]uint32, len(j.Schema.Fields))
	err = r.measurePass(ctx, j, func(rec *store.Record) error {
		rec.Split = ""
		return builder.Add(rec, sums)
	})
	if err != nil {
		return err
	}
	figures := builder.Manifest(store.Info{NormalizeByStatistics: true}).Fields[at].Normalization
	n := &r.Images.Normalize
	n.Mean, n.Std, n.Dataset = figures.Mean, figures.Std, false
	return nil
}

func countFigures(n int) string {
	if n == 1 {
		return "mean and deviation"
	}
	return fmt.Sprintf("%d means and deviations", n)
}
