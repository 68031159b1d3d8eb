package write

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ArrayWriter writes a column of the dataset in Zarr at path as arrays of that name into the stage, where its shards
// are in files.
type ArrayWriter func(path string, stage *Stage, f store.Field, shards []store.Shard, name string) (*Arrays, error)

// Arrays are those of a field, in a stage.
type Arrays struct {
	Stage    string                    // the folder in the stage that has them
	Folders  []string                  // in it, of the dataset: those of the checksums, then that of the field
	Metadata map[string]string         // the checksums of all metadata, by path
	Storage  map[string]*store.Storage // by column
}

// commitArrays makes the column arrays of a dataset in Zarr. Nobody removes them meanwhile as those of a writer that
// was killed.
func (c *ColumnWriter) commitArrays(replace Replace, change store.Change) (*store.Manifest, error) {
	root := c.stage.dest.parent
	held, err := holdGenerations(root)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	arrays, name, err := c.publishArrays(root)
	if err != nil {
		return nil, err
	}
	f := c.edited()
	f.array = storedField{name, arrays.Metadata, arrays.Storage}
	m, err := Edit(c.home, change, func(e *Editing) error { return e.put(c, f, replace) })
	if err != nil && !mayBeListed(err) {
		for _, folder := range arrays.Folders {
			err = errors.Join(err, root.RemoveAll(folder))
		}
	}
	return m, err
}

// publishArrays writes the arrays and moves them into the dataset. Their name is that of the field, unless an array has
// it, or had it in another generation.
func (c *ColumnWriter) publishArrays(root *os.Root) (a *Arrays, name string, err error) {
	name = c.field.Name
	for _, taken := range layout.Columns([]tensor.Spec{c.field.Spec}) {
		for _, folder := range []string{name, taken.SumsPath()[1:]} {
			if _, err := root.Lstat(folder); err == nil {
				name = c.field.Name + "." + RandomTag()
			}
		}
	}
	a, err = c.arrays(c.home.Folder().Name, c.stage, c.field, c.shards.sections[0].shards, name)
	if err != nil {
		return nil, "", err
	}
	for i, folder := range a.Folders {
		if _, err = root.Lstat(folder); err == nil {
			err = fmt.Errorf("another process adds a column %q: %w", c.field.Name, store.ErrBusy)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = private.Move(c.stage.Folder.root, filepath.Join(a.Stage, folder), root, folder)
		}
		if err != nil {
			for _, moved := range a.Folders[:i] {
				err = errors.Join(err, root.RemoveAll(moved))
			}
			return nil, "", err
		}
	}
	return a, name, errors.Join(syncFolder(root, metadataGroup+"/crc"), SyncRoot(root))
}
