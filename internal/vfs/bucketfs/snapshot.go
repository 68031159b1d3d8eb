package bucketfs

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// snapshot is the content of a folder and all below it when it was listed.
type snapshot struct {
	root    string // its name; "." for all
	folders map[string][]fs.DirEntry
	object  *info // what root is if it is not a folder
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

// sort puts each folder in order.
func (s *snapshot) sort() {
	for _, list := range s.folders {
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	}
}

// has reports whether it was listed what a name is. A nil snapshot has nothing.
func (s *snapshot) has(name string) bool {
	return s != nil && (s.root == "." || name == s.root || strings.HasPrefix(name, s.root+"/"))
}

// known returns what List found of a name: an entry, or an entry without a name if nothing exists there;
// false if the name was not listed.
func (f *FS) known(name string) (_ info, known bool) {
	s := f.listed.Load()
	if !s.has(name) {
		return info{}, false
	}
	if name == s.root && s.object != nil {
		return *s.object, true
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
