package meta

import (
	"fmt"
	"hash/maphash"

	"github.com/penstock/penstock/internal/sys/shell"
)

// Siblings are groups of one group whose datasets have the same names, types and numbers of axes. Each is a record,
// or a sequence of records, as robots and medical devices write them. Their datasets are not fields of one record,
// even where the lengths of their first axes are equal.
type Siblings struct {
	Parent  string   // the group that they are in
	Paths   []string // of the groups
	Members []*SiblingData

	groups []*Group
}

// SiblingData is a dataset that all siblings have.
type SiblingData struct {
	Path   string   // from the group on
	Data   *Dataset // of the first group
	Ragged bool     // the lengths of the first axis differ
	Varies bool     // the lengths of other axes differ
}

// Siblings returns the largest family of siblings in the file, nil if there is none. Groups that AnnData describes
// by an attribute are no siblings: they are columns.
func (f *File) Siblings() *Siblings {
	s := siblingScan{seed: maphash.MakeSeed()}
	s.group(f.Root)
	if s.best != nil {
		s.best.compare()
	}
	return s.best
}

// compare finds out which members have several lengths.
func (s *Siblings) compare() {
	s.Members = members(s.groups[0], s.Paths[0], nil)
	for i, g := range s.groups[1:] {
		for k, m := range members(g, s.Paths[i+1], nil) {
			a, b := s.Members[k].Data.Dims, m.Data.Dims
			for axis := range min(len(a), len(b)) {
				s.Members[k].Ragged = s.Members[k].Ragged || axis == 0 && a[0] != b[0]
				s.Members[k].Varies = s.Members[k].Varies || axis > 0 && a[axis] != b[axis]
			}
		}
	}
}

type siblingScan struct {
	seed maphash.Seed
	best *Siblings
}

// group looks for siblings in a group, and returns a hash of what the group holds, 0 where no dataset is in it.
func (s *siblingScan) group(g *Group) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	found := false
	families := make(map[uint64]*Siblings)
	for l := range g.sorted() {
		switch {
		case l.Dataset != nil:
			found = true
			fmt.Fprintf(&h, "%q%s;", l.Name, alike(l.Dataset))
		case l.Group != nil:
			sum := s.group(l.Group)
			if sum == 0 {
				continue
			}
			found = true
			fmt.Fprintf(&h, "%q%x;", l.Name, sum)
			if _, described := l.Group.Attrs.Get("encoding-type"); described {
				continue
			}
			if _, described := l.Group.Attrs.Get("h5sparse_format"); described {
				continue
			}
			f := families[sum]
			if f == nil {
				f = &Siblings{Parent: g.Path}
				families[sum] = f
			}
			f.Paths, f.groups = append(f.Paths, l.Path), append(f.groups, l.Group)
			if n := len(f.Paths); n > 1 && (s.best == nil || n > len(s.best.Paths)) {
				s.best = f
			}
		}
	}
	if !found {
		return 0
	}
	return max(h.Sum64(), 1)
}

// alike says what siblings have in common: the type of numbers, and the number of axes. Their lengths may differ.
func alike(d *Dataset) string {
	if d.Err != nil {
		return "?"
	}
	if d.Type.Class == String || d.Type.Class == Vlen {
		return fmt.Sprint(d.Type.Class, len(d.Dims))
	}
	return fmt.Sprint(d.Type, len(d.Dims))
}

// members appends the datasets of a group.
func members(g *Group, path string, list []*SiblingData) []*SiblingData {
	for l := range g.sorted() {
		switch {
		case l.Dataset != nil:
			list = append(list, &SiblingData{Path: l.Path[len(path)+1:], Data: l.Dataset})
		case l.Group != nil:
			list = members(l.Group, path, list)
		}
	}
	return list
}

// Refusal is the error of those who read arrays of a file alone.
func (s *Siblings) Refusal(file string) error {
	return fmt.Errorf("the groups %s and %s (%d in all) have the same datasets, so each is a record or a sequence of "+
		"records: package raw reads them, and so do DataLoader and open in Python; to make a dataset of them, run: %s: %w",
		s.Paths[0], s.Paths[1], len(s.Paths), shell.Rewrite(file, ""), ErrUnsupported)
}
