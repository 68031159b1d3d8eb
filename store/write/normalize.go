package write

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// NormalizationFunc chooses the normalization of a field of images. own is the mean and deviation of the field's own
// values by channel, over the split that was asked for. The stored values stay as they are: readers normalize them.
type NormalizationFunc func(f store.Field, own *store.Normalization) (*store.Normalization, error)

// SetNormalization gives the uint8 images of the flat dataset at path a normalization that
// readers apply, in place of one that they have. No record is read or written: a new manifest,
// with the next generation and the id that follows from it, takes the place of the old one in one
// step, and readers keep the generation that they opened. Split is the one that own values are
// summed up over; "" means all records.
//
// It returns the new manifest. A dataset without such images, an HDF5 file, Zarr, and one without the state of its
// statistics are ErrUnsupported; a dataset that another process builds or appends to is ErrBusy.
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
	if Unfinished(path) {
		return nil, errors.New("an append to it was stopped; finish that with --append --resume, or remove " +
			StageDir(filepath.Clean(path)))
	}
	stage, err := OpenStage(path, StageOptions{Append: true})
	if err != nil {
		return nil, err
	}
	m, err := Forward(path)
	var base store.Manifest
	if err == nil {
		base = *m
		err = normalize(m, split, choose)
	}
	var text []byte
	if err == nil {
		text, err = m.Encode()
	}
	if err == nil {
		err = stage.Folder.WriteFile(layout.ManifestName, text)
	}
	if err != nil {
		return nil, errors.Join(err, stage.Abort())
	}
	return m, stage.PublishGeneration(&base)
}

// fixedKind returns what the dataset at path is if its normalization cannot be changed; "" of a flat folder.
func fixedKind(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return "an HDF5 file"
	}
	if !layout.IsFlat(path) && layout.IsZarr(path) {
		return "Zarr"
	}
	return ""
}

// normalize changes the fields, the generation and the id.
func normalize(m *store.Manifest, split string, choose NormalizationFunc) error {
	names := m.SplitNames()
	if split != "" && !slices.Contains(names, split) {
		return fmt.Errorf("there is no split %q; there are: %q", split, names)
	}
	builder := NewManifestBuilder(m.Schema(), names...)
	if len(m.BuilderState) == 0 {
		return fmt.Errorf("its manifest has no ledger, from which its id could be recomputed: %w", store.ErrUnsupported)
	}
	if err := builder.Restore(m.BuilderState); err != nil {
		return err
	}
	fields, found := slices.Clone(m.Fields), false
	for i, f := range fields {
		if !layout.PixelBytes(f.Spec) || f.Normalization != nil && f.Normalization.Applied {
			continue
		}
		found = true
		n, err := choose(f, normalization(builder.statistics(i, f, builder.metadataOf(split))))
		if err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
		fields[i].Normalization = n
	}
	if !found {
		return fmt.Errorf("it has no uint8 images whose normalization is still to be applied: %w", store.ErrUnsupported)
	}
	m.Fields = fields
	m.Parent, m.Generation = m.Generation, m.Generation+1
	m.Change = &store.Change{Operation: "normalize"}
	var err error
	if m.ID, err = m.Deleted.ID(builder.id(fields), m.Records); err != nil {
		return err
	}
	return m.Validate()
}
