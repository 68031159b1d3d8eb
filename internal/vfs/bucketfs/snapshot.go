package bucketfs

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// snapshot is the content of a folder and all below it when it was listed.
type snapshot struct {
	root    string // its name; "." for all
	folders map[string][]fs.DirEntry
}

// MostListed is how many objects List remembers; a million takes some 250 MB.
const MostListed = 1 << 20

// Errors of List.
var (
	ErrTooMany = errors.New("too many objects to remember") // more than MostListed
	ErrArray   = errors.New("it is an array")               // of Zarr, whose chunks are found without a list
)

// arrayFiles are the names of what is in the folder of an array or a group of Zarr 2; they are the first there. That
// of Zarr 3 is the last, so that it is looked for.
var arrayFiles = []string{".zarray", ".zgroup", ".zmetadata"}

const arrayFile = "zarr.json"

// List lists a folder and all below it, a thousand objects a request, so that later calls need no request for names
// and sizes: they answer with the current state. A read of an object that was replaced since is an error.
func (f *FS) List(name string) error {
	if err := check("list", name); err != nil {
		return err
	}
	if _, err := f.Stat(path.Join(name, arrayFile)); err == nil {
		return failed("list", name, ErrArray)
	}
	s := &snapshot{root: name, folders: make(map[string][]fs.DirEntry)}
	prefix := f.folder(name)
	n := 0
	for o, err := range f.client.List(f.ctx, prefix, "") {
		if n++; n > MostListed && err == nil {
			err = ErrTooMany
		}
		if err != nil {
			return failed("list", name, err)
		}
		inner := strings.TrimPrefix(o.Key, prefix)
		if slices.Contains(arrayFiles, inner) {
			return failed("list", name, ErrArray)
		}
		if o.Folder || !fs.ValidPath(inner) || inner == "." {
			continue // the mark of an empty folder, or a key that is not a path
		}
		s.add(path.Join(name, inner), info{name: path.Base(inner), size: o.Size, tag: o.ETag})
	}
	if len(s.folders) == 0 {
		return failed("list", name, fs.ErrNotExist)
	}
	for _, list := range s.folders {
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	}
	f.listed.Store(s)
	return nil
}

// add adds an object or a folder, and the folders that it is in.
func (s *snapshot) add(name string, i info) {
	folder := path.Dir(name)
	there := s.folders[folder] != nil
	s.folders[folder] = append(s.folders[folder], fs.FileInfoToDirEntry(i))
	if !there && folder != s.root {
		s.add(folder, info{name: path.Base(folder), dir: true})
	}
}

// has reports whether it was listed what a name is. A nil snapshot has nothing.
func (s *snapshot) has(name string) bool {
	return s != nil && (s.root == "." || name == s.root || strings.HasPrefix(name, s.root+"/"))
}

// known returns what List found of a name, without a name where there is nothing; false if it was not listed.
func (f *FS) known(name string) (_ info, known bool) {
	s := f.listed.Load()
	if !s.has(name) {
		return info{}, false
	}
	if name == s.root {
		return info{name: path.Base(name), dir: true}, true
	}
	list := s.folders[path.Dir(name)]
	i, found := slices.BinarySearchFunc(list, path.Base(name), func(e fs.DirEntry, name string) int {
		return cmp.Compare(e.Name(), name)
	})
	if !found {
		return info{}, true
	}
	is, err := list[i].Info()
	own, ok := is.(info)
	return own, err == nil && ok
}
