package meta

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// LinkKind says how a link names its target.
type LinkKind uint8

// The kinds of links.
const (
	Hard        LinkKind = iota // by address
	Soft                        // by a path in this file
	External                    // by a path in another file
	UserDefined                 // in a way that only the writer knows
)

var linkNames = [...]string{"hard", "soft", "external", "user-defined"}

// String returns the name, for example "soft".
func (k LinkKind) String() string {
	if int(k) < len(linkNames) {
		return linkNames[k]
	}
	return fmt.Sprintf("link %d", uint8(k))
}

// Link is one entry of a group. A hard link has exactly one of Group, Dataset and Type,
// unless Loop is set or Err says why the object could not be read. A soft link has the Dataset that it leads to, if
// any.
type Link struct {
	Name    string
	Path    string // from the root group, for example "/train/images"
	Kind    LinkKind
	Group   *Group
	Dataset *Dataset
	Type    *Datatype // a committed datatype
	Attrs   Attrs     // Hard: of the object
	Object  Object    // Hard, unless Loop or Err: what is the same by whatever path it is reached
	Loop    bool      // Hard: the target is a group that contains this link; not followed
	Target  string    // Soft, External: the path it names
	File    string    // External: the file it names
	Err     error     // Hard: wraps ErrUnsupported
}

// Object is a group, dataset or committed datatype, whatever its names.
type Object struct {
	HeaderAt int64     // offset of the object header, which no other object has
	Links    int       // how many links lead to the object, as stored; datasets link to their committed type, too
	Modified time.Time // when the object was last changed; zero if that is not stored
}

// Group is a folder of the file, as reached by one path.
type Group struct {
	Path       string
	Object     Object
	Attrs      Attrs
	Links      []Link // as they were created if the group tracks that, else in name order (byte-wise)
	HeaderAt   int64  // offset of the object header
	HeaderSize int64  // bytes of it, continuation blocks included
	Version    int    // of the object header, 1 or 2

	byName []int32 // Links in name order
}

// Get returns the link of that name.
func (g *Group) Get(name string) (*Link, bool) {
	i, ok := slices.BinarySearchFunc(g.byName, name, func(i int32, n string) int {
		return cmp.Compare(g.Links[i].Name, n)
	})
	if !ok {
		return nil, false
	}
	return &g.Links[g.byName[i]], true
}

// sorted visits the links in name order.
func (g *Group) sorted() iter.Seq[*Link] {
	return func(yield func(*Link) bool) {
		for _, i := range g.byName {
			if !yield(&g.Links[i]) {
				return
			}
		}
	}
}

// Limits of the tree of names: its depth, as groups are read recursively, and its links, as many names can lead to one
// object. A million episodes have two or three million links.
const (
	maxDepth = 128
	maxLinks = 1 << 22
)

// group builds the group at path from its object, and everything below it.
func (p *parser) group(o *object, path string) (*Group, error) {
	if len(p.trail) >= maxDepth {
		return nil, p.src.ErrorAt(ErrUnsupported, o.addr, "object header", "groups nested more than %d deep", maxDepth)
	}
	g := &Group{Path: path, Attrs: o.attrs, HeaderAt: p.src.Abs(o.addr), HeaderSize: o.headerSize, Version: o.version,
		Object: o.facts}
	g.Links, g.byName = make([]Link, 0, len(o.links)), make([]int32, 0, len(o.links))
	p.trail = append(p.trail, o.addr)
	slices.SortStableFunc(o.links, func(a, b rawLink) int {
		if o.tracked && a.order != b.order {
			return cmp.Compare(a.order, b.order)
		}
		return cmp.Compare(a.name, b.name)
	})
	for i, raw := range o.links {
		l, err := p.link(raw, path)
		if err != nil {
			return nil, inPath(err, strings.TrimSuffix(path, "/")+"/"+raw.name)
		}
		g.Links, g.byName = append(g.Links, l), append(g.byName, int32(i))
	}
	p.trail = p.trail[:len(p.trail)-1]
	slices.SortFunc(g.byName, func(i, j int32) int { return cmp.Compare(g.Links[i].Name, g.Links[j].Name) })
	return g, p.unique(g, o)
}

// unique refuses two links of one name in a group: a path with the name would be ambiguous.
func (p *parser) unique(g *Group, o *object) error {
	last := ""
	for l := range g.sorted() {
		if l.Name == last {
			return p.src.ErrorAt(ErrCorrupt, o.addr, "group", "two links are named %q", l.Name)
		}
		last = l.Name
	}
	return nil
}

// link makes a Link from an entry of the group at dir, and follows it if it is hard. A link to a group that contains it
// is not followed, since the tree of names would have no end.
func (p *parser) link(raw rawLink, dir string) (Link, error) {
	l := Link{Name: raw.name, Kind: raw.kind, Target: raw.target, File: raw.file}
	l.Path = strings.TrimSuffix(dir, "/") + "/" + raw.name
	group := p.trail[len(p.trail)-1]
	if raw.name == "" || raw.name == "." || strings.ContainsAny(raw.name, "/\x00") {
		return l, p.src.ErrorAt(ErrCorrupt, group, "group", "link named %q", raw.name)
	}
	p.links--
	if p.links < 0 || !p.src.Spend(int64(len(l.Path))) {
		return l, p.src.ErrorAt(ErrUnsupported, group, "group", "more links than the limit for a file of %d bytes",
			p.src.Size)
	}
	if raw.kind != Hard {
		return l, nil
	}
	if slices.Contains(p.trail, raw.addr) {
		l.Loop = true
		return l, nil
	}
	err := p.follow(&l, raw.addr)
	return l, err
}

// follow reads the object that a hard link points to.
func (p *parser) follow(l *Link, addr uint64) error {
	o, err := p.object(addr)
	if err != nil {
		l.Err = inPath(err, l.Path)
		return onlyFatal(err)
	}
	l.Attrs, l.Object = o.attrs, o.facts
	switch {
	case o.isGroup:
		l.Group, err = p.group(o, l.Path)
	case o.dataset != nil:
		d := *o.dataset
		d.Path = l.Path
		l.Dataset = &d
	default:
		l.Type = o.typ
	}
	return err
}
