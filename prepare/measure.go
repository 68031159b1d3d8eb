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

// measuring runs over the source for mean and deviation of what a run will write.
type measuring struct{ run *run }

// setNormalizeSplit makes Config.NormalizeSplit the split that the dataset's own mean and
// deviation come from, so that the recipe says it. Without splits it is "".
func (m measuring) setNormalizeSplit() error {
	c, names := &m.run.config, writing(m).splits()
	if !c.Images.Normalize.Dataset || m.run.collected != nil {
		return nil
	}
	switch want := c.NormalizeSplit; {
	case len(names) == 0 && want != "" && want != allRecords:
		return fmt.Errorf("--normalize-split %s: the dataset has no splits; --split makes them", want)
	case len(names) == 0:
		c.NormalizeSplit = ""
	case want == "":
		c.NormalizeSplit = trainingSplit(names)
		m.run.info.Hints = append(m.run.info.Hints,
			fmt.Sprintf("mean and deviation are taken over the split %s; --normalize-split all takes every record",
				c.NormalizeSplit))
	case want != allRecords && !slices.Contains(names, want):
		return fmt.Errorf("--normalize-split %s: there is no such split%s", want,
			suggest.Hint(want, append(names, allRecords)))
	}
	return nil
}

// trainingSplit returns the split that is called as the one for training is, or else the first.
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
// names, in order. Splits and duplicates are decided as they are when the records are written.
func (m measuring) measurePass(ctx context.Context, j *execute.Job, add func(*store.Record) error) error {
	m.run.log = newRunLog(m.run.config)
	want, measured := m.run.config.NormalizeSplit, false
	err := m.run.pass(ctx, j, "measuring (1 of 2)",
		ahead(j, m.run.config.Source, m.run.src.Samples()), func(s *execute.Slot) error {
			if repeated, err := placing(m).duplicate(s); repeated {
				return err
			}
			split, err := placing(m).splitOf(j, s)
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
	m.run.skip = int64(len(m.run.log.skipped))
	return err
}

// measureArrays runs over the source for the statistics of the arrays that --normalize dataset
// names, and adds them as transforms of these fields.
func (m measuring) measureArrays(ctx context.Context) error {
	c := m.run.config
	if !c.Images.Normalize.Dataset || c.Images.Normalize.Fields == nil &&
		slices.ContainsFunc(m.run.info.Fields, field.HasPixels) {
		return nil
	}
	j, err := m.run.newJob(ctx, c)
	if err != nil {
		return err
	}
	list, err := c.Images.Measures(j.Fields, j.Source, j.Schema)
	if err != nil || len(list) == 0 {
		return err
	}
	if m.run.base != nil {
		return fmt.Errorf("--append and --normalize dataset: mean and std would describe the new records alone; give "+
			"mean and std of %s, with the recipe that %s prints: --pipeline FILE", c.Dest,
			shell.On("inspect show --recipe", c.Dest))
	}
	err = m.measurePass(ctx, j, func(rec *store.Record) error {
		for _, f := range list {
			f.Add(rec.Values[f.At])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.standardize(j, list)
}

// standardize enters the statistics as transforms.
func (m measuring) standardize(j *execute.Job, list []*field.Moments) error {
	m.run.config.Images.Own = make(map[string]transforms.Standardize)
	for _, f := range list {
		name := j.Source[f.At].Name
		t := f.Transform()
		if _, err := t.Resolve(); err != nil {
			return fmt.Errorf("--normalize dataset: field %q: %w", name, err)
		}
		m.run.config.Images.Own[name] = t
		m.run.progress.Note(fmt.Sprintf("%s is standardized by its own %s%s\n", name, countFigures(len(t.Mean)),
			ofSplit(m.run.config.NormalizeSplit)))
	}
	return nil
}

// measures reports whether the statistics of the dataset are needed before it is written.
func (m measuring) measures() bool {
	c := m.run.config
	return c.Images.Normalize.OfImages() && c.Images.WithImageDefaults().DType != tensor.Uint8 &&
		c.Images.Transforms == nil && slices.ContainsFunc(m.run.info.Fields, field.HasPixels)
}

// measure runs over the source for the mean and deviation of its pixels as they would be
// stored in uint8.
func (m measuring) measure(ctx context.Context) (*store.Normalization, error) {
	c := m.run.config
	c.Images.DType = tensor.Uint8
	j, err := m.run.newJob(ctx, c)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(j.Schema.Fields, func(f store.Field) bool { return f.Layout != "" && !f.OnImage() })
	if at < 0 {
		return nil, errors.New("--normalize dataset: --keep-encoded leaves the images as they are")
	}
	builder, sums := write.NewManifestBuilder(j.Schema), make([]uint32, len(j.Schema.Fields))
	err = m.measurePass(ctx, j, func(rec *store.Record) error {
		rec.Split = ""
		return builder.Add(rec, sums)
	})
	if err != nil {
		return nil, err
	}
	return builder.Manifest(store.Info{NormalizeByStatistics: true}).Fields[at].Normalization, nil
}

func countFigures(n int) string {
	if n == 1 {
		return "mean and deviation"
	}
	return fmt.Sprintf("%d means and deviations", n)
}
