package preprocess

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/store"
)

// allRecords is the Config.NormalizeSplit that takes mean and deviation over every split.
const allRecords = "all"

// setNormalizeSplit makes Config.NormalizeSplit the split that the dataset's own mean and
// deviation come from, so that the recipe says it. Without splits it is "".
func (r *run) setNormalizeSplit() error {
	c, names := &r.config, r.splits()
	if !c.Normalize.Dataset || r.collected != nil {
		return nil
	}
	switch want := c.NormalizeSplit; {
	case len(names) == 0 && want != "" && want != allRecords:
		return fmt.Errorf("--normalize-split %s: the dataset has no splits; --split makes them", want)
	case len(names) == 0:
		c.NormalizeSplit = ""
	case want == "":
		c.NormalizeSplit = trainingSplit(names)
		r.info.Hints = append(r.info.Hints, fmt.Sprintf("mean and deviation are those of the split %s; --normalize-split all takes every record", c.NormalizeSplit))
	case want != allRecords && !slices.Contains(names, want):
		return fmt.Errorf("--normalize-split %s: there is no such split%s", want, suggest.Hint(want, append(names, allRecords)))
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
func (r *run) measurePass(ctx context.Context, j *job, add func(*store.Record) error) error {
	r.books = newBooks(r.config)
	want, measured := r.config.NormalizeSplit, false
	err := r.pass(ctx, j, "measuring (1 of 2)", r.src.Samples(), func(s *slot) error {
		if repeated, err := r.duplicate(s); repeated {
			return err
		}
		if split := r.splitOf(j, s); want != "" && want != allRecords && split != want {
			return nil
		}
		measured = true
		return add(s.record)
	})
	if err == nil && !measured {
		err = fmt.Errorf("--normalize dataset: the split %s has no records to compute mean and deviation of", want)
	}
	r.skip = int64(len(r.books.skipped))
	return err
}
