package bucket

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// NameArrays implements write.ArrayHome. The name has random digits, so that no other writer chooses it. A bucket has
// no locks, so nothing is reserved: [Home.Prune] leaves young objects alone.
func (h *Home) NameArrays(f store.Field) (name string, release func() error, err error) {
	return layout.FileName(f.Name) + "." + write.RandomTag(), func() error { return nil }, nil
}

// PublishArrays implements write.ArrayHome.
func (h *Home) PublishArrays(stage *write.Stage, a *write.Arrays) error {
	files, err := filesOf(stage, a)
	if err == nil {
		err = h.Publish(stage, files)
	}
	if err != nil {
		err = errors.Join(err, h.UnpublishArrays(a))
	}
	return err
}

// filesOf lists the files of arrays in the stage, with their names in the dataset.
func filesOf(stage *write.Stage, a *write.Arrays) (files []write.Published, err error) {
	for _, folder := range a.Folders {
		from := path.Join(a.Stage, folder)
		err := fs.WalkDir(stage.Folder.Root().FS(), from, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil {
				to := store.File{Name: strings.TrimPrefix(name, a.Stage+"/"), Bytes: info.Size()}
				files = append(files, write.Published{From: filepath.FromSlash(name), File: to})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// UnpublishArrays implements write.ArrayHome.
func (h *Home) UnpublishArrays(a *write.Arrays) error {
	var errs []error
	for _, folder := range a.Folders {
		objects, err := h.under(folder)
		for _, o := range objects {
			errs = append(errs, h.remove(o.name))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// file is an object of the dataset. name is its name in the dataset.
type file struct {
	name string
	remote.Object
}

// under lists all objects in a folder of the dataset.
func (h *Home) under(folder string) (files []file, err error) {
	prefix := h.objects.Key(folder) + "/"
	for o, err := range h.client.List(h.ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		files = append(files, file{path.Join(folder, strings.TrimPrefix(o.Key, prefix)), o})
	}
	return files, nil
}

// findArrays is find for Zarr. Either all arrays of a field are removed or none: as long as one of their objects is
// young, a writer may still be sending more objects.
func (p *pruning) findArrays() error {
	pruned := make(map[string]bool)
	for _, g := range p.pruned {
		if g.manifest != nil {
			maps.Copy(pruned, write.NamesOf(g.manifest))
		}
	}
	top, err := p.folders(".")
	if err != nil {
		return err
	}
	sums, err := p.folders(write.ChecksumGroup)
	if err != nil {
		return err
	}
	for _, o := range write.FindOrphans(top, sums, p.needed, pruned) {
		if err := p.take(append(o.Arrays, o.Checksums...)); err != nil {
			return err
		}
	}
	return nil
}

// folders lists the folders in a folder of the dataset.
func (p *pruning) folders(name string) (names []string, err error) {
	entries, err := p.home.objects.ReadDir(name)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// take adds the objects in folders to the objects to remove, in this order, if all of them are old.
func (p *pruning) take(folders []string) error {
	var all []file
	for _, folder := range folders {
		files, err := p.home.under(folder)
		if err != nil {
			return err
		}
		all = append(all, files...)
	}
	if slices.ContainsFunc(all, func(f file) bool { return !p.old(f.Object) }) {
		return nil
	}
	for _, f := range all {
		p.files, p.Files, p.Bytes = append(p.files, f.name), p.Files+1, p.Bytes+f.Size
	}
	return nil
}
