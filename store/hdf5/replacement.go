package hdf5

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/seal"
)

// checkSealed refuses a file that another program has changed: what that program added would not be in the file which
// takes its place.
func checkSealed(path string) error {
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return layout.WithoutPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = seal.Find(f, info.Size())
	}
	if errors.Is(err, seal.ErrNone) {
		return fmt.Errorf("another program has changed the file, so it is left as it is; write a new one: %s: %w",
			shell.Rewrite(path, ""), store.ErrUnsupported)
	}
	return layout.WithoutPath(err)
}

// check makes sure that the file at path is the one that is replaced. The stage keeps other writers out.
func (r *Replacement) check(path string) error {
	if r == nil {
		return nil
	}
	m, err := store.ReadManifest(path)
	if err != nil {
		return err
	}
	if m.Generation != r.Base.Generation || m.ID != r.Base.ID {
		return fmt.Errorf("it was changed meanwhile: %w", store.ErrBusy)
	}
	return nil
}

// next makes m the manifest of the generation that replaces r.Base.
func (r *Replacement) next(m *store.Manifest) {
	if r == nil {
		return
	}
	m.Generation, m.Change, m.Splits = r.Base.Generation+1, &r.Change, r.Splits
	m.Recipe, m.Source, m.Skipped = r.Base.Recipe, r.Base.Source, r.Base.Skipped
}

// choices says how the columns are compressed.
func (r *Replacement) choices(columns []layout.Column) []*choice {
	out := make([]*choice, len(columns))
	for k, c := range columns {
		s := r.Storage[c.Name]
		if s == nil || c.Rows == 0 {
			continue
		}
		out[k] = &choice{Choice: encode.Choice{Reason: s.Reason, Recipe: encode.Recipe{
			Record: c.Spec.RecordBytes(), Elem: c.Spec.DType.Size(), Records: int(min(s.ChunkRows, c.Rows)), Level: s.Level,
			Shuffle: s.Shuffle,
		}}}
	}
	return out
}
