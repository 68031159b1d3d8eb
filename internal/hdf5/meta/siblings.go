package meta

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
)

// Siblings are groups whose datasets have the same names, types and numbers of axes, or datasets of one type whose
// shapes differ in the first axis only. Each is a record, or a sequence of records, as robots and medical devices write
// them. They are not fields of one record, even if the lengths of their first axes are equal.
type Siblings struct {
	Paths []string  // paths of all siblings, wherever they are in the file
	Inner *Siblings // siblings inside of these, which may be the records as well; nil if there are none

	sum      uint64
	count    int  // in one group
	arrays   int  // arrays in all of these groups
	numbered bool // the names differ in digits only
	texts    bool // they are lists of texts
}

// LeastNumbered is how many datasets of one shape, whose names differ in digits only, are siblings. Fewer are columns.
const LeastNumbered = 8

// Siblings returns the largest family of siblings in the file, nil if there is none. Groups that AnnData or
// pandas describes by an attribute are no siblings: they are columns.
func (f *File) Siblings() *Siblings {
	s := siblingScan{seed: maphash.MakeSeed(), alike: make(map[uint64]*family), lengths: make(map[int64]int)}
	best := s.group(f.Root).best
	for in := best; in != nil; in = in.Inner {
		in.Paths = s.alike[in.sum].paths
	}
	if best != nil && !best.numbered && best.Inner == nil {
		if all := s.alike[best.sum].arrays; all.length >= 0 && s.lengths[all.length] > all.count {
			return nil // all arrays and another one have one length, as left and right images and their labels do
		}
	}
	return best
}

// siblingScan looks for siblings in a file.
type siblingScan struct {
	seed    maphash.Seed
	alike   map[uint64]*family // by a hash of what they hold
	lengths map[int64]int      // how many arrays have a length
}

// family is all groups of a file with the same content, wherever they are, or datasets that are alike.
type family struct {
	paths []string
	arrays
}

// arrays are datasets that have axes.
type arrays struct {
	count  int
	length int64 // of their first axes; -1 if these differ
}

// add joins the arrays of two groups. length is their common length, or -1 if the arrays of a group differ in length.
func (a *arrays) add(b arrays) {
	switch {
	case b.count == 0:
	case a.count == 0:
		a.length = b.length
	case a.length != b.length:
		a.length = -1
	}
	a.count += b.count
}

// scanned is the result of scanning a group.
type scanned struct {
	sum  uint64 // a hash of what it holds; 0 where no dataset is in it
	best *Siblings
	arrays
}

// group looks for siblings in a group.
func (s *siblingScan) group(g *Group) (found scanned) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	groups, datasets := make(map[uint64]*Siblings), make(map[uint64]*Siblings)
	names := make(map[uint64]string)
	within := make(map[uint64]*Siblings)
	add := func(families map[uint64]*Siblings, sum uint64, l *Link, a arrays) {
		f := families[sum]
		if f == nil {
			f = &Siblings{sum: sum, numbered: true}
			families[sum], names[sum] = f, Numberless(l.Name)
		}
		f.count, f.arrays = f.count+1, f.arrays+a.count
		f.numbered = f.numbered && names[sum] == Numberless(l.Name) && names[sum] != l.Name
		if s.alike[sum] == nil {
			s.alike[sum] = new(family)
		}
		s.alike[sum].paths = append(s.alike[sum].paths, l.Path)
		s.alike[sum].add(a)
	}
	members := 0
	for l := range g.sorted() {
		switch {
		case l.Dataset != nil:
			members++
			fmt.Fprintf(&h, "%q%s;", l.Name, alike(l.Dataset))
			if l.Dataset.Err != nil || len(l.Dataset.Dims) == 0 {
				continue
			}
			a := arrays{1, l.Dataset.Dims[0]}
			found.add(a)
			s.lengths[a.length]++
			sum := s.shape(l.Dataset)
			add(datasets, sum, l, a)
			datasets[sum].texts = l.Dataset.IsText() && len(l.Dataset.Dims) == 1
		case l.Group != nil && !l.isInternal():
			in := s.group(l.Group)
			if in.sum == 0 {
				continue
			}
			members++
			fmt.Fprintf(&h, "%q%x;", l.Name, in.sum)
			found.add(in.arrays)
			within[in.sum] = larger(within[in.sum], in.best)
			if !l.Group.isDescribed() {
				add(groups, in.sum, l, in.arrays)
			}
		}
	}
	if members == 0 {
		return found
	}
	for sum, f := range groups {
		if f.Inner = within[sum]; f.count < 2 {
			continue
		}
		if f.Inner != nil && (!f.Inner.numbered || f.Inner.arrays*f.count != f.arrays) {
			f.Inner = nil // parts of a record, such as its observations and those after them
		}
		delete(within, sum)
		found.best = larger(found.best, f)
	}
	for _, f := range within {
		found.best = larger(found.best, f)
	}
	for _, f := range datasets {
		if f.count == members && f.count > 1 && s.areSiblings(g, f, found.length) {
			found.best = larger(found.best, f)
		}
	}
	found.sum = max(h.Sum64(), 1)
	return found
}

// areSiblings reports whether datasets that are alike, and are all datasets of a group, are records and not columns.
func (s *siblingScan) areSiblings(g *Group, f *Siblings, length int64) bool {
	for i := range g.Links {
		if d := g.Links[i].Dataset; d != nil && d.IsDimension() {
			return false
		}
	}
	return length < 0 || f.numbered && f.count >= LeastNumbered && len(g.Links[g.byName[0]].Dataset.Dims) > 1
}

// larger returns the larger of two families. Lists of texts are smaller than any other family: beside groups, they name
// the groups of a split.
func larger(a, b *Siblings) *Siblings {
	switch {
	case a == nil:
		return b
	case b != nil && (a.texts && !b.texts || a.texts == b.texts && b.count > a.count):
		return b
	}
	return a
}

// isDescribed reports whether AnnData or pandas describes a group by an attribute. Such a group is one table, and not a
// record.
func (g *Group) isDescribed() bool {
	return slices.ContainsFunc(g.Attrs, func(a Attr) bool {
		return a.Name == "encoding-type" || a.Name == "h5sparse_format" || a.Name == "pandas_type"
	})
}

// shape returns a hash of a dataset's type and of its shape without the first axis.
func (s *siblingScan) shape(d *Dataset) uint64 {
	return maphash.String(s.seed, fmt.Sprint(alike(d), d.Dims[1:]))
}

// alike returns what siblings have in common: the type of numbers, and the number of axes. Their lengths may differ.
func alike(d *Dataset) string {
	if d.Err != nil {
		return "?"
	}
	if d.Type.Class == String || d.Type.Class == Vlen {
		return fmt.Sprint(d.Type.Class, len(d.Dims))
	}
	return fmt.Sprint(d.Type, len(d.Dims))
}

// Numberless returns a name without its digits.
func Numberless(name string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// Refusal returns the error of readers that take each array of a file as a field.
func (s *Siblings) Refusal(file string) error {
	return fmt.Errorf("%s and %s (%d in all) have the same datasets or shapes, so each is a record or a sequence of "+
		"records, and not a field: package raw reads them; to make a dataset of them, run: %s: %w",
		s.Paths[0], s.Paths[1], len(s.Paths), shell.Rewrite(file, ""), ErrUnsupported)
}
