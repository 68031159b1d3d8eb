package meta

import (
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
)

// File is the metadata of an HDF5 file. It is immutable and safe for concurrent use.
type File struct {
	Superblock Superblock
	Size       int64 // true size of the file
	Root       *Group

	r       io.ReaderAt
	lax     bool // see source
	extents []Extent
	scales  map[int64]string // the names of dimension scales, by the offset of their header
}

// maxBytes is the largest amount of metadata that Open reads, whatever the size of the file.
const maxBytes = 1 << 30

// Open reads the metadata of everything that hard links reach from the root group of a
// file of size bytes. It reads through r only, no elements of datasets; r must stay usable
// for Dataset.Value and Dataset.Chunks. Work and memory are limited by the size of the
// file. The error wraps ErrNotHDF5, ErrCorrupt, ErrUnsupported or the error of r. Errors
// of single objects in a valid file are in Dataset.Err, Link.Err and Attr.Err.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer guard(&err)
	if size < 0 || size > 1<<60 {
		return nil, fmt.Errorf("hdf5: file of %d bytes: %w", size, ErrUnsupported)
	}
	return (&File{r: r, Size: size}).open()
}

// guard turns a panic in the parser into an error. Checks come first everywhere, and guard is for a check that was
// forgotten: a hostile file must not end the process. Tests call the unexported functions, so that they see the panic.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("hdf5: parser failed: %v: %w", p, ErrCorrupt)
	}
}

// open reads all groups and the headers of all objects, but no chunk index and no element. It spends from a budget that
// follows from the size of the file: a hostile file can describe more metadata than it has bytes, by linking many names
// to one group, and is then refused instead of read for hours.
func (f *File) open() (*File, error) {
	off, err := findSuperblock(f.r, f.Size)
	if err != nil {
		return nil, err
	}
	s := f.session(&f.extents)
	if f.Superblock, err = readSuperblock(s, off); err != nil {
		return nil, err
	}
	p := newParser(s, f.Superblock)
	if err := p.extension(); err != nil {
		return nil, err
	}
	root, err := p.object(f.Superblock.root)
	if err == nil && !root.isGroup {
		err = p.src.ErrorAt(ErrCorrupt, root.addr, "object header", "root is not a group")
	}
	if err != nil {
		return nil, inPath(err, "/")
	}
	if f.Root, err = p.group(root, "/"); err != nil {
		return nil, err
	}
	if p.src.Over {
		return nil, p.src.ErrorAt(ErrUnsupported, root.addr, "root group",
			"more metadata than the limit for a file of %d bytes", f.Size)
	}
	f.scales = make(map[int64]string)
	for d := range f.All() {
		d.file = f
		if d.IsScale() {
			f.scales[d.HeaderAt] = path.Base(d.Path)
		}
	}
	f.followSoft()
	f.extents = tidyExtents(f.extents)
	return f, nil
}

// followSoft adds each soft link that leads to a dataset of this file to the names of the dataset, as other programs
// find the dataset by it.
func (f *File) followSoft() {
	for l := range f.Walk() {
		if l.Kind != Soft {
			continue
		}
		if to, err := f.Lookup(l.Path); err == nil && to.Dataset != nil {
			d := *to.Dataset
			d.Path = l.Path
			l.Dataset = &d
		}
	}
}

// session returns a source with a new budget, which is 16 times the size of a small file and 1 MiB, and maxBytes for a
// large one.
func (f *File) session(trace *[]Extent) *source {
	sb := f.Superblock
	left := int64(maxBytes)
	if f.Size < maxBytes/32 {
		left = 1<<20 + 16*f.Size
	}
	return &source{R: f.r, Size: f.Size, Base: sb.Base, OffSize: sb.OffsetSize, LenSize: sb.LengthSize, Left: left,
		Lax: f.lax, Trace: trace}
}

// extension reads the superblock extension for the tree sizes and shared messages in it.
func (p *parser) extension() error {
	if p.sb.extension == undef {
		return nil
	}
	h, err := readHeader(p.src, p.sb.extension)
	if err != nil {
		return err
	}
	if m, ok := h.First(msgBTreeK); ok {
		c := m.Cursor(p.src, "B-tree K message")
		c.Version(0, 0)
		p.sb.chunkK, p.sb.groupK, p.sb.leafK = c.U16(), c.U16(), c.U16()
		if c.Err != nil {
			return c.Err
		}
	}
	if m, ok := h.First(msgCacheImage); ok {
		if err := p.cacheImage(m); err != nil {
			return err
		}
	}
	if m, ok := h.First(msgSharedTable); ok {
		return p.shared.readSharedTable(m)
	}
	return nil
}

// cacheImage refuses a file whose metadata is in an image of libhdf5's cache, and not in its usual places.
func (p *parser) cacheImage(m message) error {
	c := m.Cursor(p.src, "metadata cache image message")
	c.Version(0, 0)
	if c.Addr() != undef && c.Err == nil {
		c.Unsupported("the file's metadata is in an image of libhdf5's cache; rewrite it: h5repack OLD.h5 NEW.h5")
	}
	return c.Err
}

// All visits all datasets, depth first, in the order of links. A dataset with several links, hard or soft, comes once
// for each.
func (f *File) All() iter.Seq[*Dataset] {
	return func(yield func(*Dataset) bool) {
		for l := range f.Walk() {
			if l.Dataset != nil && !yield(l.Dataset) {
				return
			}
		}
	}
}

// Datasets returns the datasets that All visits.
func (f *File) Datasets() []*Dataset {
	var list []*Dataset
	for d := range f.All() {
		list = append(list, d)
	}
	return list
}

// Data visits the datasets that All visits, except for datasets that programs keep for themselves: the objects that
// cells of MATLAB refer to, the indices of PyTables, and blocks of pandas.
func (f *File) Data() iter.Seq[*Dataset] {
	return func(yield func(*Dataset) bool) { f.Root.data(yield) }
}

func (g *Group) data(yield func(*Dataset) bool) bool {
	for i := range g.Links {
		switch l := &g.Links[i]; {
		case l.Dataset != nil && !yield(l.Dataset), l.Group != nil && !l.isInternal() && !l.Group.data(yield):
			return false
		}
	}
	return true
}

// isInternal reports whether a program keeps the group for itself.
func (l *Link) isInternal() bool {
	return l.Name == "#refs#" || l.Name == "#subsystem#" || strings.HasPrefix(l.Name, "_i_") || l.Group.IsFrame()
}

// IsFrame reports whether a group is a DataFrame or Series in the fixed format of pandas.
func (g *Group) IsFrame() bool {
	a, ok := g.Attrs.Get("pandas_type")
	if !ok {
		return false
	}
	kind, _ := a.Value.Text()
	return kind == "frame" || kind == "series"
}

// Walk visits every link below the root, in the order of the file: the link of a group comes before the links in the
// group.
func (f *File) Walk() iter.Seq[*Link] {
	return func(yield func(*Link) bool) { f.Root.walk(yield) }
}

// Walk visits every link below the group, in the order of the file: the link of a group comes before the links in the
// group.
func (g *Group) Walk() iter.Seq[*Link] { return func(yield func(*Link) bool) { g.walk(yield) } }

func (g *Group) walk(yield func(*Link) bool) bool {
	for i := range g.Links {
		l := &g.Links[i]
		if !yield(l) || l.Group != nil && !l.Group.walk(yield) {
			return false
		}
	}
	return true
}

// maxHops limits the soft links that a lookup follows, as soft links can form a cycle.
const maxHops = 32

// Lookup returns the link at an absolute path, following soft links. The error says which
// part of the path leads nowhere; it wraps ErrUnsupported where the path leaves the file.
func (f *File) Lookup(name string) (*Link, error) {
	full := path.Clean("/" + name)
	for range maxHops {
		l, next, err := f.step(full)
		if err != nil || l != nil {
			return l, err
		}
		full = next
	}
	return nil, refuse("path %q has more than %d soft links", name, maxHops)
}

// step follows a clean path up to its end, or up to its first soft link, for which it returns the path with the link
// replaced by its target.
func (f *File) step(full string) (l *Link, next string, err error) {
	l = &Link{Name: "/", Path: "/", Group: f.Root}
	rest := strings.TrimPrefix(full, "/")
	for rest != "" {
		name, tail, _ := strings.Cut(rest, "/")
		if l.Group == nil {
			return nil, "", fmt.Errorf("%q is not a group", l.Path)
		}
		child, ok := l.Group.Get(name)
		switch {
		case !ok:
			return nil, "", fmt.Errorf("group %q has no %q", l.Path, name)
		case child.Err != nil:
			return nil, "", child.Err
		case child.Kind == Soft:
			target := child.Target
			if !path.IsAbs(target) {
				target = path.Join(l.Path, target)
			}
			return nil, path.Join("/", target, tail), nil
		case child.Kind != Hard:
			return nil, "", refuse("%s link %q is not followed", child.Kind, child.Path)
		case child.Loop:
			return nil, "", refuse("%q leads back to a group that it is inside of", child.Path)
		}
		l, rest = child, tail
	}
	return l, "", nil
}

// Dataset returns the dataset at a path. It follows soft links.
func (f *File) Dataset(name string) (*Dataset, error) {
	l, err := f.Lookup(name)
	if err != nil {
		return nil, err
	}
	if l.Dataset == nil {
		return nil, fmt.Errorf("%q is not a dataset", l.Path)
	}
	return l.Dataset, nil
}

// Extents returns the structures that Open read and the contiguous data, by offset.
// Chunks and their indexes, free space and unused room are not listed.
func (f *File) Extents() []Extent { return slices.Clone(f.extents) }
