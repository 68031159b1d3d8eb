package prepare

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// SetNormalization stores mean and std of the images in the metadata of a flat dataset, for readers to apply, and
// rewrites no record. The dataset's own statistics are taken over a split, which it returns: "" for all records.
func SetNormalization(dataset string, figures Normalize, split string) (*store.Manifest, string, error) {
	split, err := measuredSplit(dataset, figures, split)
	if err != nil {
		return nil, "", err
	}
	m, err := write.SetNormalization(dataset, split, func(f store.Field, own *store.Normalization) (
		*store.Normalization, error) {
		return figuresOf(figures, f, own)
	})
	return m, split, err
}

// measuredSplit returns the split that the dataset's own statistics come from; "" means all records.
func measuredSplit(dataset string, figures Normalize, split string) (string, error) {
	if !figures.Dataset {
		return "", nil
	}
	ds, err := store.Open(dataset, store.OpenOptions{})
	if err != nil {
		return "", err
	}
	var names []string
	if ds.Manifest != nil {
		if ds.Manifest.Deleted != nil {
			return "", fmt.Errorf("records are deleted, and the statistics of what is stored count them; write the others "+
				"out, with their own: %s: %w", shell.Rewrite(dataset, "--normalize dataset"),
				store.ErrUnsupported)
		}
		names = ds.Manifest.SplitNames()
	}
	switch {
	case split == allRecords:
		return "", nil
	case split != "" && !slices.Contains(names, split):
		return "", fmt.Errorf("--split %s: there is no such split%s", split, suggest.Hint(split, append(names, allRecords)))
	case split != "" || len(names) == 0:
		return split, nil
	}
	return trainingSplit(names), nil
}

// figuresOf returns the mean and deviation to store for a field, one number a channel: the numbers in figures or, if
// figures asks for it, own, which were measured on the dataset's images. figures must have one number for all channels,
// or as many as the images have channels.
func figuresOf(figures Normalize, f store.Field, own *store.Normalization) (*store.Normalization, error) {
	if figures.Dataset {
		return own, nil
	}
	if channels := len(own.Mean); len(figures.Mean) != 1 && len(figures.Mean) != channels {
		return nil, fmt.Errorf("%s has %d channels, and its images have %d", figures, len(figures.Mean), channels)
	}
	return figures.Field(len(own.Mean)), nil
}
