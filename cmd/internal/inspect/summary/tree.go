package summary

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Node is an object of an HDF5 file, as reached by one path. An object with several hard links is a
// Node for each path.
type Node struct {
	Path       string      `json:"path"`
	Kind       string      `json:"kind"` // group, dataset, type, soft link, external link, other link
	DType      string      `json:"dtype,omitempty"`
	Named      bool        `json:"named_type,omitempty"` // the dataset's type is a committed type of the file
	Padding    string      `json:"padding,omitempty"`    // of strings: "null-terminated", "null-padded" or "space-padded"
	Shape      []int64     `json:"shape,omitempty"`      // of a dataset that is not a scalar
	MaxShape   []int64     `json:"max_shape,omitempty"`  // if it differs from Shape; -1 is unlimited
	Layout     string      `json:"layout,omitempty"`
	Chunk      []int64     `json:"chunk,omitempty"`
	Offset     *int64      `json:"offset,omitempty"` // of the elements, if they are contiguous
	Bytes      int64       `json:"bytes,omitempty"`  // of the elements before filters
	Filters    []string    `json:"filters,omitempty"`
	Optional   []string    `json:"optional_filters,omitempty"` // the filters that a chunk may have skipped
	Mappable   *bool       `json:"mappable,omitempty"`
	Reason     string      `json:"reason,omitempty"` // why it is not mappable, or could not be read
	Target     string      `json:"target,omitempty"` // of a link
	Header     int64       `json:"header,omitempty"` // offset of the object header
	Links      int         `json:"links,omitempty"`  // links to it, including datasets that name it as their type
	Modified   *time.Time  `json:"modified,omitempty"`
	Attributes []Attribute `json:"attributes,omitempty"`
	Storage    *Storage    `json:"storage,omitempty"` // of a dataset
}

// Attribute is an attribute of an HDF5 object.
type Attribute struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape,omitempty"`
	Value any     `json:"value"` // null if the value is not read, see Note
	Note  string  `json:"note,omitempty"`
}

// objectsOf lists the objects of a file, a group before its members.
func objectsOf(f *meta.File) []Node {
	root := Node{Path: "/", Kind: "group", Attributes: attributesOf(f.Root.Attrs)}
	root.object(f.Root.Object)
	nodes := []Node{root}
	for l := range f.Walk() {
		n := nodeOf(f, l)
		n.object(l.Object)
		if l.Kind == meta.Hard && l.Err == nil && l.Dataset != nil {
			n.Storage = storageOf(l.Dataset, l.Object.Links)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// object sets the values that the object header stores, for every kind of object.
func (n *Node) object(o meta.Object) {
	n.Header, n.Links = o.HeaderAt, o.Links
	if !o.Modified.IsZero() {
		n.Modified = &o.Modified
	}
}

// nodeOf describes a link and, if it leads to an object, the object.
func nodeOf(f *meta.File, l *meta.Link) Node {
	n := Node{Path: l.Path}
	switch {
	case l.Err != nil:
		n.Kind, n.Reason = "unreadable", l.Err.Error()
	case l.Kind == meta.Soft:
		n.Kind, n.Target = "soft link", l.Target
		if _, err := f.Lookup(l.Path); err != nil {
			n.Reason = err.Error()
		}
	case l.Kind == meta.External:
		n.Kind, n.Target = "external link", l.File+":"+l.Target
	case l.Kind == meta.UserDefined:
		n.Kind = "other link"
	case l.Loop:
		n.Kind, n.Reason = "group", "leads back to a group around it"
	case l.Dataset != nil:
		n.dataset(l.Dataset)
	case l.Type != nil:
		n.Kind, n.DType, n.Attributes = "type", l.Type.String(), attributesOf(l.Attrs)
	case l.Group != nil:
		n.Kind, n.Attributes = "group", attributesOf(l.Group.Attrs)
	}
	return n
}

// dataset describes a dataset.
func (n *Node) dataset(d *meta.Dataset) {
	n.Kind, n.Attributes = "dataset", attributesOf(d.Attrs)
	if d.Err != nil {
		n.Reason = d.Err.Error()
	}
	if d.Type != nil {
		n.DType, n.Named = d.Type.String(), d.Type.Committed
		n.Padding = paddingOf(d.Type)
	}
	n.Shape = d.Dims
	for i, m := range d.MaxDims {
		if m != d.Dims[i] {
			n.MaxShape = d.MaxDims
		}
	}
	n.Layout = d.Layout.Kind.String()
	switch d.Layout.Kind {
	case meta.Chunked:
		n.Chunk = d.Layout.ChunkDims
	case meta.Compact, meta.Contiguous:
		if d.Layout.Offset >= 0 {
			n.Offset = &d.Layout.Offset
		}
	}
	for _, f := range d.Filters {
		n.Filters = append(n.Filters, f.String())
		if f.Optional {
			n.Optional = append(n.Optional, f.Name)
		}
	}
	if elems, ok := d.Elems(); ok && d.Type != nil && d.Type.Size > 0 && elems <= math.MaxInt64/d.Type.Size {
		n.Bytes = elems * d.Type.Size
	}
	n.mappable(d)
}

// paddings has the names of string paddings in JSON.
var paddings = map[meta.Padding]string{meta.NullTerm: "null-terminated", meta.NullPad: "null-padded",
	meta.SpacePad: "space-padded"}

// paddingOf says how strings of a type end, "" for other types.
func paddingOf(t *meta.Datatype) string {
	if t.Class == meta.String || t.VlenString {
		return paddings[t.Padding]
	}
	return ""
}

// mappable sets whether the elements can be mapped, or why not. Elements at an unaligned offset
// cannot be seen as numbers in place.
func (n *Node) mappable(d *meta.Dataset) {
	err := d.Mappable()
	if err == nil && !d.Aligned() {
		err = fmt.Errorf("starts at byte %d, which is no multiple of its element size", d.Layout.Offset)
	}
	ok := err == nil
	n.Mappable = &ok
	if err != nil {
		n.Reason = strings.TrimSuffix(err.Error(), ": "+meta.ErrUnsupported.Error())
	}
}

// attributeElems is the number of elements above which an attribute's value is left out.
const attributeElems = 1024

// attributesOf describes the attributes of an object.
func attributesOf(attrs meta.Attrs) []Attribute {
	var out []Attribute
	for i := range attrs {
		a := &attrs[i]
		item := Attribute{Name: a.Name, Shape: a.Space.Dims}
		if a.Type != nil {
			item.DType = a.Type.String()
		}
		elems, ok := a.Space.Elems()
		switch {
		case a.Err != nil:
			item.Note = a.Err.Error()
		case !ok || elems > attributeElems:
			item.Note = fmt.Sprintf("%d elements", elems)
		default:
			item.Value = asJSON(a.Value.Any())
		}
		out = append(out, item)
	}
	return out
}

// asJSON replaces NaN and infinities, which JSON has no numbers for, by their names.
func asJSON(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case []float64:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = asJSON(x)
		}
		return out
	}
	return v
}
