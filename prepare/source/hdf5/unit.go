package hdf5

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/cells"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// Units returns the groups and datasets of the file that a declaration names, in the order in which they were created
// if the file has that order, and otherwise in the order of their names. A link to another file among them is an error:
// its records would be missing.
func (f *File) Units(records *unit.Records) ([]unit.Unit, error) {
	links := []*meta.Link{{Path: "/", Group: f.meta.Root}}
	for level := range records.Levels {
		var below []*meta.Link
		for _, l := range links {
			// A declaration with more levels matches nothing below a dataset.
			if l.Group == nil {
				continue
			}
			for _, inner := range ordered(l.Group) {
				if !records.Matches(level, inner.Name) {
					continue
				}
				// An external link that matches would be a unit whose records are missing.
				if missed := f.missed(inner); missed != nil {
					return nil, fmt.Errorf("%s: %w", trim(inner.Path), missed)
				}
				below = append(below, inner)
			}
		}
		links = below
	}
	var list []unit.Unit
	for _, l := range links {
		if l.Group != nil || l.Dataset != nil {
			list = append(list, &unitOf{f, l})
		}
	}
	if list == nil {
		var names []string
		for i := range f.meta.Root.Links {
			names = append(names, f.meta.Root.Links[i].Name)
		}
		return nil, fmt.Errorf("records %q: no group or dataset has such a path; at the top are %s", records,
			source.Enumerate(names, 12))
	}
	return list, nil
}

// Unit returns the group or dataset at a path as a unit; "" is the whole file.
func (f *File) Unit(path string) (unit.Unit, error) {
	l, err := f.meta.Lookup(path)
	switch {
	case err != nil:
		return nil, err
	case path == "":
		if c := f.Cells(); c != nil {
			return c, nil
		}
	}
	return &unitOf{f, l}, nil
}

// ordered returns the links of a group in the order of units. A file without the order of creation lists links by name,
// byte by byte; then unit.Compare sorts them, which compares numbers in names as numbers.
func ordered(g *meta.Group) (list []*meta.Link) {
	byName := true
	for i := range g.Links {
		l := &g.Links[i]
		byName = byName && (i == 0 || g.Links[i-1].Name < l.Name)
		list = append(list, l)
	}
	if byName {
		slices.SortFunc(list, func(a, b *meta.Link) int { return unit.Compare(a.Name, b.Name) })
	}
	return list
}

// unitOf is a group or a dataset as a unit.
type unitOf struct {
	file *File
	link *meta.Link
}

// Name implements unit.Unit.
func (u *unitOf) Name() string { return trim(u.link.Path) }

// datasets yields the datasets of the unit, with their names inside the unit.
func (u *unitOf) datasets(yield func(name string, d *meta.Dataset) bool) {
	if u.link.Dataset != nil {
		yield(unit.Lone, u.link.Dataset)
		return
	}
	for l := range u.link.Group.Walk() {
		if l.Dataset == nil || l.Dataset.IsDimension() {
			continue
		}
		if !yield(u.nameOf(l), l.Dataset) {
			return
		}
	}
}

// nameOf returns the name of a link inside the unit.
func (u *unitOf) nameOf(l *meta.Link) string {
	return strings.TrimPrefix(l.Path, strings.TrimSuffix(u.link.Path, "/")+"/")
}

// Members implements unit.Unit. A link that may hold records and is not followed becomes a member with an error.
func (u *unitOf) Members() (list []unit.Member, err error) {
	if u.link.Group != nil {
		for l := range u.link.Group.Walk() {
			if missed := u.file.missed(l); missed != nil {
				list = append(list, unit.Member{Name: u.nameOf(l), Rows: -1, Err: missed})
			}
		}
	}
	for name, d := range u.datasets {
		rows := int64(-1)
		if len(d.Dims) > 0 {
			rows = d.Dims[0]
		}
		all, err := parts(withRows(d))
		if err != nil {
			list = append(list, unit.Member{Name: name, Rows: rows, Err: err})
			continue
		}
		for _, p := range all {
			m := unit.Member{Name: name + p.name, Field: p.field, Rows: rows}
			if names := d.Dimensions(); len(names) > 0 && rows >= 0 {
				m.Axis, m.Grows = names[0], len(d.MaxDims) > 0 && d.MaxDims[0] < 0
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// Open implements unit.Unit.
func (u *unitOf) Open(members []string) ([]array.Column, io.Closer, error) {
	columns := make([]array.Column, len(members))
	for name, d := range u.datasets {
		if !slices.ContainsFunc(members, func(m string) bool { return m == name || strings.HasPrefix(m, name+"/") }) {
			continue
		}
		list, err := u.file.columns(withRows(d), asItIs)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range list {
			member := name + strings.TrimPrefix(c.Field.Origin, trim(d.Path))
			if i := slices.Index(members, member); i >= 0 {
				columns[i] = c
			}
		}
	}
	return columns, nil, nil
}

// withRows returns a dataset that has an axis of records: a scalar becomes a dataset of one row.
func withRows(d *meta.Dataset) *meta.Dataset {
	if d.Err != nil || d.Null || len(d.Dims) > 0 {
		return d
	}
	one := *d
	one.Dims = []int64{1}
	return &one
}

// Attribute implements unit.Unit. A name with a slash in front is an attribute of the file's root.
func (u *unitOf) Attribute(name string) (a unit.Attribute, ok bool) {
	attrs := u.link.Attrs
	if u.link.Group != nil {
		attrs = u.link.Group.Attrs
	}
	if name, ok = strings.CutPrefix(name, "/"); ok {
		attrs = u.file.meta.Root.Attrs
	}
	found, ok := attrs.Get(name)
	if !ok {
		return a, false
	}
	if text, ok := found.Value.Text(); ok {
		return unit.Attribute{Field: source.ContentField(name, tensor.Text), Value: []byte(text)}, true
	}
	if x, ok := found.Value.Int(); ok {
		return unit.Attribute{Field: source.NumberField(name, tensor.Int64),
			Value: binary.LittleEndian.AppendUint64(nil, uint64(x))}, true
	}
	if x, ok := found.Value.Floats(); ok && len(x) == 1 {
		return unit.Attribute{Field: source.NumberField(name, tensor.Float64),
			Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x[0]))}, true
	}
	return a, false
}

// Names reports whether a selection names an object of the file by its path from the root. Only such a selection can be
// meant for single datasets.
func (f *File) Names(selection []column.Selection) bool {
	return slices.ContainsFunc(selection, func(w column.Selection) bool {
		_, err := f.meta.Lookup(w.Column)
		return err == nil
	})
}

// Lists returns the datasets of texts outside of units as lists of names, at most most names each. Lists that cannot be
// read are left out: they are an offer to people and no records.
func (f *File) Lists(records *unit.Records, most int) (lists []unit.List) {
	for d := range f.meta.Data() {
		if d.Err != nil || len(d.Dims) != 1 || d.Dims[0] > int64(most) ||
			!d.IsText() || records.Contains(trim(d.Path)) {
			continue
		}
		if names, err := cells.Texts(hierarchy{f}, trim(d.Path)); err == nil {
			lists = append(lists, unit.List{Name: trim(d.Path), Units: names})
		}
	}
	return lists
}

// Guess returns the declaration of records for a file whose groups are alike, and the groups; nil for any other file.
// If the file does not tell which groups are the records, the error lists the declarations to choose from. The
// selected arrays decide.
func (f *File) Guess(selection []column.Selection) (*unit.Records, []unit.Unit, error) {
	siblings := f.meta.Siblings()
	if siblings == nil {
		return nil, nil, nil
	}
	var ways []*unit.Records
	var first, all []unit.Unit
	for in := siblings; in != nil; in = in.Inner {
		records, units := f.declare(in.Paths, false)
		if records == nil {
			records, units = f.declare(in.Paths, true)
		}
		if records == nil {
			return nil, nil, fmt.Errorf("%s and %s (%d in all) have the same arrays, and others beside them do not; name the groups "+
				"that are records: --records 'GROUP/*[:]' for their rows, or --records 'GROUP/*' for each", trim(in.Paths[0]), trim(in.Paths[1]), len(in.Paths))
		}
		if ways = append(ways, records); first == nil {
			all = units
			for _, u := range units {
				if slices.Contains(in.Paths, u.(*unitOf).link.Path) {
					first = append(first, u)
				}
			}
		}
	}
	certain, err := false, error(nil)
	if len(ways) == 1 {
		certain, err = unit.Guess(first, ways[0], selection)
	}
	if err != nil || certain {
		return ways[0], all, err
	}
	return nil, nil, unit.Ambiguous(first, ways...)
}

// declare returns a declaration with a glob that matches the groups or datasets at paths, and the units that it
// declares; nil if no glob matches them. The glob is applied to the file again. It matches exactly paths or, with most,
// also a smaller number of other groups, which then have other arrays: package unit says which arrays these groups
// lack.
func (f *File) declare(paths []string, most bool) (*unit.Records, []unit.Unit) {
	var levels [][]string // the names on each level
	for _, path := range paths {
		names := strings.Split(trim(path), "/")
		if levels == nil {
			levels = make([][]string, len(names))
		}
		if len(names) != len(levels) {
			return nil, nil
		}
		for i, name := range names {
			levels[i] = append(levels[i], name)
		}
	}
	globs := []func(names []string) string{starFor, prefixOf}
	if most {
		slices.Reverse(globs) // so that an array beside the groups is not named
	}
	for _, glob := range globs {
		records := new(unit.Records)
		for _, names := range levels {
			records.Levels = append(records.Levels, glob(names))
		}
		units, err := f.Units(records)
		isArray := func(u unit.Unit) bool { return u.(*unitOf).link.Group == nil }
		if err == nil && (len(units) == len(paths) || most && len(units) < 2*len(paths) && !slices.ContainsFunc(units, isArray)) {
			return records, units
		}
	}
	return nil, nil
}

// starFor returns the name that all names are equal to, or "*".
func starFor(names []string) string {
	if prefixOf(names) == names[0] {
		return names[0]
	}
	return "*"
}

// prefixOf returns the name that all names are equal to, or their common prefix and "*".
func prefixOf(names []string) string {
	prefix, same := names[0], true
	for _, name := range names {
		same = same && name == names[0]
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	if same {
		return names[0]
	}
	// demo_10, demo_11 and demo_12 are demo_*, and not demo_1*, which would leave demo_2 out.
	return strings.TrimRight(prefix, "0123456789") + "*"
}
