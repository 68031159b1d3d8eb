package write

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// NormalizationFunc chooses the normalization of a field of images. own is the mean and deviation of the field's own
// values by channel, over the split that was asked for. The stored values stay as they are: readers normalize them.
type NormalizationFunc func(f store.Field, own *store.Normalization) (*store.Normalization, error)

// SetNormalization gives the uint8 images of the flat dataset at path a normalization that readers apply, in place of
// the present one. No record is read or written: the next generation has the same files, and another id, as the id
// includes the normalization. Own values are summed up over the records of split, or over all records if split is "".
//
// It returns the new manifest. A dataset without such images, an HDF5 file, Zarr, and a dataset without the state of
// its statistics are ErrUnsupported; a dataset that another process builds or appends to is ErrBusy.
func SetNormalization(path, split string, choose NormalizationFunc) (*store.Manifest, error) {
	m, err := setNormalization(path, split, choose)
	if err != nil {
		return nil, fmt.Errorf("store: normalize %q: %w", path, err)
	}
	return m, nil
}

func setNormalization(path, split string, choose NormalizationFunc) (*store.Manifest, error) {
	if kind := fixedKind(path); kind != "" {
		if _, err := store.Open(path, store.OpenOptions{}); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the normalization of %s stays as it was written; write the dataset again: %s: %w", kind,
			shell.Rewrite(path, "--normalize dataset"), store.ErrUnsupported)
	}
	if err := CheckChangeable(path); err != nil {
		return nil, err
	}
	stage, err := OpenStage(path, StageOptions{Append: true}) // the lock of the stage keeps appends out
	if err != nil {
		return nil, err
	}
	m, err := Edit(Dir(path), store.Change{Operation: "normalize"}, func(e *Editing) error {
		return e.normalize(split, choose)
	})
	return m, errors.Join(err, stage.Abort())
}

// fixedKind names the format of the dataset at path if its normalization cannot be changed; "" for a flat folder.
func fixedKind(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return "an HDF5 file"
	}
	if !layout.IsFlat(path) && layout.IsZarr(path) {
		return "Zarr"
	}
	return ""
}

// normalize chooses the normalization of all image fields whose values are not normalized already.
func (e *Editing) normalize(split string, choose NormalizationFunc) error {
	if split != "" && !slices.Contains(e.splits, split) {
		return fmt.Errorf("there is no split %q; there are: %q", split, e.splits)
	}
	found := false
	for i := range e.fields {
		f := &e.fields[i]
		if !layout.PixelBytes(f.Spec) || f.Normalization != nil && f.Normalization.Applied {
			continue
		}
		found = true
		n, err := choose(f.Field, normalization(f.of.statistics(f.at, f.Field, f.of.metadataOf(split))))
		if err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
		f.Normalization = n
	}
	if !found {
		return fmt.Errorf("it has no uint8 images whose normalization is still to be applied: %w", store.ErrUnsupported)
	}
	return nil
}
