package write

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// Home is the place of a dataset that is changed: a folder of the machine, see [Dir], or objects of a bucket. Readers
// keep the generation that they have opened, so nothing that a generation lists is ever replaced.
type Home interface {
	// Folder returns the folder that lists the generations of the dataset.
	Folder() store.Folder

	// Check refuses a dataset that cannot be changed.
	Check() error

	// Commit makes next the newest generation. The files of next exist and are durable. If the newest generation is no
	// longer base, the error is ErrLost, and nothing has changed.
	Commit(base, next *store.Manifest) error

	// Hold keeps other processes from removing a generation until release is called. The error is fs.ErrNotExist if the
	// generation has been removed already.
	Hold(m *store.Manifest) (release func() error, err error)

	// Spool returns a path of this machine at which a column is built in a Stage. After the build, release removes
	// folders that were made for it, if they are empty.
	Spool(field string) (dest string, release func(), err error)

	// Publish makes files of a Stage files of the dataset, durably, under names that no file of the dataset has ever
	// had.
	Publish(stage *Stage, files []Published) error

	// Unpublish removes files that no generation lists.
	Unpublish(names []string) error

	// CreateTag makes the file of a tag of m's generation. The error is store.ErrExist if the tag exists.
	CreateTag(m *store.Manifest, name string, text []byte) error

	// RemoveTag removes the file of a tag.
	RemoveTag(name string) error
}

// Published is a file of a stage that becomes a file of the dataset.
type Published struct {
	From string // its name in the stage
	store.File
}

// Dir is the folder of a dataset on this machine.
type Dir string

var _ Home = Dir("")

// Folder implements Home.
func (d Dir) Folder() store.Folder { return store.Folder{FS: vfs.Folder(d), Name: string(d)} }

// Check implements Home. It refuses datasets that keep no generations, and a dataset with an interrupted append.
func (d Dir) Check() error { return CheckChangeable(string(d)) }

// CheckChangeable is Check for a dataset at a path of the machine.
func CheckChangeable(path string) error {
	d, err := store.Open(path, store.OpenOptions{Packed: true})
	switch {
	case err != nil:
		return err
	case d.Manifest == nil:
		return store.NoGenerations(path)
	case d.Format == "hdf5":
		return layout.OneGeneration(layout.Folder(path))
	case layout.Folder(path) != path:
		return fmt.Errorf("%s: only the newest generation can be changed; restore this one first: %w", path,
			store.ErrUnsupported)
	case Unfinished(path):
		return errors.New("an append to it was stopped; finish that with --append --resume, or remove " +
			StageDir(filepath.Clean(path)))
	}
	return nil
}

// Commit implements Home.
func (d Dir) Commit(base, next *store.Manifest) error {
	return CommitGeneration(string(d), base, next)
}

// Hold implements Home by a lock that readers share and Prune has to take alone.
func (d Dir) Hold(m *store.Manifest) (release func() error, err error) {
	held, err := lease.Shared(string(d), filepath.Join(string(d), filepath.FromSlash(layout.GenerationName(m.Generation))))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return func() error { return nil }, fmt.Errorf("generation %d was removed: %w", m.Generation, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("generation %d is being removed: %w", m.Generation, err)
	}
	return held.Close, nil
}

// Spool implements Home. The stage is in the folder of the dataset, so that Publish can link files instead of copying
// them.
func (d Dir) Spool(field string) (dest string, release func(), err error) {
	return filepath.Join(string(d), layout.FileName(field)+ColumnName), func() {}, nil
}

// Publish implements Home by links. The files keep their names in the stage, so the column can be resumed if the commit
// fails. The new names are on disk before a manifest lists them.
func (d Dir) Publish(stage *Stage, files []Published) error {
	for _, f := range files {
		if err := stage.dest.parent.Link(filepath.Join(stage.dest.stage, f.From), f.Name); err != nil {
			return err
		}
	}
	return SyncRoot(stage.dest.parent)
}

// Unpublish implements Home.
func (d Dir) Unpublish(names []string) error {
	root, err := openDataset(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for _, name := range names {
		errs = append(errs, removeIfThere(root, name))
	}
	return errors.Join(errs...)
}

// CreateTag implements Home by a link.
func (d Dir) CreateTag(m *store.Manifest, name string, text []byte) error {
	return createTag(string(d), m, name, text)
}

// RemoveTag implements Home.
func (d Dir) RemoveTag(name string) error { return removeTag(string(d), name) }
