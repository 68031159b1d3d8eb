package write

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ArrayWriter writes columns of a dataset in Zarr as arrays.
type ArrayWriter interface {
	// Frame returns the form in which files of the stage can become files of the field's array without a copy, and how
	// many records each file has. A nil Frame says that Write has to copy the values.
	Frame(base *store.Manifest, in store.Folder, f store.Field) (*Frame, []int64, error)

	// Write writes a column, whose shards are files of the stage, as arrays in the stage.
	Write(base *store.Manifest, in store.Folder, stage *Stage, c ArrayColumn) (*Arrays, error)
}

// ArrayColumn is a column that an ArrayWriter writes.
type ArrayColumn struct {
	store.Field
	Shards []store.Shard
	Framed bool   // the files of the shards have the form that Frame returned
	Stored string // the name of the arrays
}

// Arrays describes the arrays of a field in a stage.
type Arrays struct {
	Stage    string                    // the folder in the stage that has them
	Folders  []string                  // below Stage: the folders of checksums, then the folder of the field
	Metadata map[string]string         // the checksums of all metadata, by path
	Storage  map[string]*store.Storage // by column
}

// ArrayHome is a Home that may have a dataset in Zarr.
type ArrayHome interface {
	Home

	// NameArrays returns a name for the arrays of a field, which no array of the dataset has or had. Until release is
	// called, no Prune takes them for the arrays of a writer that was killed.
	NameArrays(f store.Field) (name string, release func() error, err error)

	// PublishArrays makes the arrays of a Stage part of the dataset, durably. After an error no array is left there.
	PublishArrays(stage *Stage, a *Arrays) error

	// UnpublishArrays removes arrays that no generation lists.
	UnpublishArrays(a *Arrays) error
}

var _ ArrayHome = Dir("")

// commitArrays publishes the arrays of a column and then commits the generation that lists them. The name of the arrays
// stays reserved until the commit is done: without the reservation, a Prune would take arrays that no generation lists
// yet for the remains of a killed writer.
func (c *ColumnWriter) commitArrays(replace Replace, change store.Change) (m *store.Manifest, err error) {
	home, ok := c.home.(ArrayHome)
	if !ok {
		return nil, fmt.Errorf("columns are not arrays there: %w", store.ErrUnsupported)
	}
	name, release, err := home.NameArrays(c.field)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	arrays, err := c.arrays.Write(c.base, c.home.Folder(), c.stage,
		ArrayColumn{c.field, c.shards.sections[0].shards, c.shards.opts.Frame != nil, name})
	if err == nil {
		err = home.PublishArrays(c.stage, arrays)
	}
	if err != nil {
		return nil, err
	}
	f := c.edited()
	f.array = storedField{name, arrays.Metadata, arrays.Storage}
	m, err = Edit(c.home, change, func(e *Editing) error { return e.put(c, f, replace) })
	if err != nil && !mayBeListed(err) {
		err = errors.Join(err, home.UnpublishArrays(arrays))
	}
	return m, err
}

// NameArrays implements ArrayHome. It returns the name of the field, or the name with random digits if an array has or
// had that name in any generation. Until release is called, a lock on the folder of generations keeps Prune from
// running.
func (d Dir) NameArrays(f store.Field) (name string, release func() error, err error) {
	root, err := openDataset(string(d))
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	held, err := holdGenerations(root)
	if err != nil {
		return "", nil, err
	}
	name = layout.FileName(f.Name)
	for _, taken := range layout.Columns([]tensor.Spec{f.Spec}) {
		for _, folder := range []string{name, taken.SumsPath()[1:]} {
			if _, err := root.Lstat(folder); err == nil {
				name = layout.FileName(f.Name) + "." + RandomTag()
			}
		}
	}
	return name, held.Close, nil
}

// PublishArrays implements ArrayHome. The folders of checksums move first and the field's folder last. After a crash in
// between, FindOrphans finds the checksums, which only penstock writes; a folder with a plain name and no checksums
// could be another program's, and would stay.
func (d Dir) PublishArrays(stage *Stage, a *Arrays) error {
	root, err := openDataset(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	for i, folder := range a.Folders {
		if _, err = root.Lstat(folder); err == nil {
			err = fmt.Errorf("another process adds a column of that name: %w", store.ErrBusy)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = private.Move(stage.Folder.root, filepath.Join(a.Stage, folder), root, folder)
		}
		if err != nil {
			for _, moved := range a.Folders[:i] {
				err = errors.Join(err, root.RemoveAll(moved))
			}
			return err
		}
	}
	return errors.Join(syncFolder(root, ChecksumGroup), SyncRoot(root))
}

// UnpublishArrays implements ArrayHome.
func (d Dir) UnpublishArrays(a *Arrays) error {
	root, err := openDataset(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, folder := range a.Folders {
		err = errors.Join(err, root.RemoveAll(folder))
	}
	return err
}
