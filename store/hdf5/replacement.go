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
	"github.com/penstock/penstock/store/write"
)

// checkSealed refuses a file that another program has changed, or whose metadata is damaged: what that program added
// would be missing in the file that takes its place. The stage then expects exactly the file that was checked.
func checkSealed(stage *write.Stage) error {
	f, err := vfs.OpenRegular(stage.Dest())
	if err != nil {
		return layout.WithoutPath(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		_, err = seal.Check(f, info.Size())
	}
	if errors.Is(err, seal.ErrNone) {
		return fmt.Errorf("another program has changed the file, and a new one would not have what that program added; "+
			"this writes the fields that penstock knows to a dataset: %s: %w", shell.Rewrite(stage.Dest(), ""),
			store.ErrUnsupported)
	}
	stage.Expect(info)
	return layout.WithoutPath(err)
}

// check makes sure that the destination is still the file that is to be replaced. From then on the lock of the stage
// keeps other writers out, so a file system without locks is refused.
func (r *Replacement) check(stage *write.Stage) error {
	if r == nil {
		return nil
	}
	if !stage.Locked() {
		return fmt.Errorf("%w, without which two changes of an HDF5 file would mix: change a copy in a folder of .npy "+
			"files: %s: %w", write.ErrNoLocks, shell.Rewrite(stage.Dest(), ""), store.ErrUnsupported)
	}
	m, err := store.ReadManifest(stage.Dest())
	if err != nil {
		return err
	}
	if m.Generation != r.Base.Generation || m.ID != r.Base.ID {
		return fmt.Errorf("it was changed meanwhile: %w", store.ErrBusy)
	}
	return nil
}

// next makes m the manifest of the generation that replaces r.Base. A nil Replacement changes nothing.
func (r *Replacement) next(m *store.Manifest) {
	if r == nil {
		return
	}
	m.Generation, m.Change, m.Splits = r.Base.Generation+1, &r.Change, r.Splits
	m.Recipe, m.Source, m.Skipped = r.Base.Recipe, r.Base.Source, r.Base.Skipped
}

// choices returns how the columns are compressed, as r.Storage describes.
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
