package mmapds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/store"
)

// errPruned says that the generation of a manifest was removed after it was read.
var errPruned = errors.New("its generation was removed while it was being opened")

// leaseGeneration locks the generation of a dataset in a folder, so that its files stay until the
// lock is closed. It locks the generation's own manifest or, if that has no name of its own yet,
// the manifest in the folder, which is the same file. The name may appear between the two attempts,
// so that the locked file is compared with it afterwards: a lock on the wrong file would protect
// nothing.
func leaseGeneration(d *store.Dataset) (*os.File, error) {
	own := filepath.Join(d.Path, filepath.FromSlash(layout.GenerationName(d.Manifest.Generation)))
	for range 2 {
		f, err := lease.Shared(d.Path, own)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = lease.Shared(d.Path, filepath.Join(d.Path, filepath.FromSlash(layout.Manifest(d.Path))))
		}
		switch {
		case errors.Is(err, lease.ErrBusy):
			return nil, errPruned
		case err != nil:
			return nil, fmt.Errorf("mmapds: open %q: %w", d.Path, err)
		}
		if there, err := os.Stat(own); err != nil || isFile(f, there) {
			if err != nil && f.Name() == own {
				return nil, errors.Join(errPruned, f.Close())
			}
			return f, nil
		}
		if err := f.Close(); err != nil { // it got its name meanwhile
			return nil, err
		}
	}
	return nil, errPruned
}

// inGenerations reports whether the dataset is one of several generations in a folder. An HDF5 file
// has only one.
func inGenerations(d *store.Dataset) bool {
	return d.Manifest != nil && (d.Format == "flat" || d.Format == "zarr")
}

// isFile reports whether f is the open file of there.
func isFile(f *os.File, there fs.FileInfo) bool {
	is, err := f.Stat()
	return err == nil && os.SameFile(is, there)
}

// Generations implements loader.GenerationSource: the folder or file, and the generation that is
// open. A file has one generation only, so that IDIn reports a State taken before the file was
// replaced as missing.
func (d *Dataset) Generations() (folders []string, numbers []int) {
	folder, _ := d.home()
	if folder == "" {
		return nil, nil
	}
	return []string{folder}, []int{d.files.Manifest.Generation}
}

// home returns the folder of the dataset's generations, and a function that reads the manifest of
// a generation. The folder is "" if there are no generations.
func (d *Dataset) home() (folder string, read func(n int) (*store.Manifest, error)) {
	if p, ok := d.pager.(GenerationPager); ok && inGenerations(d.files) {
		return p.Home(), p.ReadGeneration
	}
	if d.files.Manifest == nil || d.pager != nil {
		return "", nil
	}
	return d.files.Path, func(n int) (*store.Manifest, error) {
		m, _, err := store.ReadGeneration(d.files.Path, n)
		return m, err
	}
}

// IDIn implements loader.GenerationSource: a State of another generation can be resumed here if the
// open fields have the same values in both generations.
func (d *Dataset) IDIn(numbers []int) (string, error) {
	folders, now := d.Generations()
	if len(folders) == 0 || slices.Equal(numbers, now) {
		return d.ID(), nil
	}
	n, m := numbers[0], d.files.Manifest
	folder, read := d.home()
	other, err := read(n)
	if err != nil {
		return "", fmt.Errorf("it is of generation %d, and generation %d is open: %w", n, m.Generation, err)
	}
	if !d.sameFields(m, other) {
		return idOf(other, d.split), fmt.Errorf("it is of generation %d, whose records or fields differ from those of "+
			"generation %d; open %s@%d", n, m.Generation, folder, n)
	}
	return idOf(other, d.split), nil
}

// sameFields reports whether the open fields have the same records in two generations. It compares
// manifests, without reading records: columns of both generations name the same stored extents
// where nothing was changed.
func (d *Dataset) sameFields(a, b *store.Manifest) bool {
	var names []string
	for _, f := range d.files.Schema.Fields {
		i := b.Schema().Index(f.Name)
		if i < 0 || !reflect.DeepEqual(f, b.Fields[i]) {
			return false
		}
		names = append(names, f.Name)
	}
	return a.Records == b.Records && reflect.DeepEqual(a.Splits, b.Splits) && sameDeleted(a, b) &&
		layout.SameColumns(names, a.BuilderState, b.BuilderState, a.Schema().Specs(), b.Schema().Specs())
}

// sameDeleted reports whether two generations with equally many records have the same deleted
// records.
func sameDeleted(a, b *store.Manifest) bool {
	if (a.Deleted == nil) != (b.Deleted == nil) {
		return false
	}
	x, errX := a.Deleted.Words(a.Records)
	y, errY := b.Deleted.Words(b.Records)
	return errX == nil && errY == nil && slices.Equal(x, y)
}
