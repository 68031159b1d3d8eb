package zarr

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/cells"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// hierarchy is a Zarr store as a cells.Hierarchy. It embeds the store as one unit.
type hierarchy struct {
	unitOf
	arrays map[string]*zarr.Array // by path
	lists  map[string][]string    // by group: the names of its members, sorted
}

// newHierarchy indexes the groups and arrays of g.
func newHierarchy(ctx context.Context, path string, g *zarr.Group, pool *chunk.Pool) *hierarchy {
	h := &hierarchy{unitOf: unitOf{ctx: ctx, source: path, group: g, pool: pool}, arrays: make(map[string]*zarr.Array),
		lists: make(map[string][]string)}
	for _, a := range g.Arrays {
		h.arrays[a.Path] = a
		h.enter(a.Path)
	}
	for name := range g.Groups {
		h.enter(name)
	}
	for _, list := range h.lists {
		slices.Sort(list)
	}
	return h
}

// enter adds a path to the members of the group that contains it, and so on up to the root. Consolidated metadata
// need not list every group.
func (h *hierarchy) enter(path string) {
	for path != "" {
		above, name := "", path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			above, name = path[:i], path[i+1:]
		}
		// If this group is known already, so are the groups above it.
		if slices.Contains(h.lists[above], name) {
			return
		}
		h.lists[above] = append(h.lists[above], name)
		path = above
	}
}

func (h *hierarchy) Path() string              { return h.source }
func (h *hierarchy) Format() string            { return "zarr" }
func (h *hierarchy) Context() context.Context  { return h.ctx }
func (h *hierarchy) List(path string) []string { return h.lists[path] }
func (h *hierarchy) isGroup(path string) (is bool) {
	_, is = h.group.Groups[path]
	return is || h.lists[path] != nil
}

// Kind implements cells.Hierarchy.
func (h *hierarchy) Kind(path string) cells.Kind {
	switch {
	case h.arrays[path] != nil:
		return cells.Array
	case h.isGroup(path):
		return cells.Group
	}
	return cells.Missing
}

// attribute is the JSON of an attribute.
type attribute json.RawMessage

func (a attribute) Text() (s string, ok bool)         { return s, json.Unmarshal(a, &s) == nil }
func (a attribute) Strings() (list []string, ok bool) { return list, json.Unmarshal(a, &list) == nil }
func (a attribute) Ints() (list []int64, ok bool)     { return list, json.Unmarshal(a, &list) == nil }

// Attribute implements cells.Hierarchy.
func (h *hierarchy) Attribute(path, name string) (cells.Value, bool) {
	attributes := h.group.Groups[path]
	if a := h.arrays[path]; a != nil {
		attributes = a.Attributes
	} else if path == "" {
		attributes = h.group.Attributes
	}
	text, ok := attributes[name]
	return attribute(text), ok
}

// UnitAttribute implements cells.Hierarchy.
func (h *hierarchy) UnitAttribute(name string) (unit.Attribute, bool) {
	return h.unitOf.Attribute("/" + strings.TrimPrefix(name, "/"))
}

// find returns the array at a path.
func (h *hierarchy) find(path string) (*zarr.Array, error) {
	if a := h.arrays[path]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("%s: there is no such array: %w", path, meta.ErrCorrupt)
}

// Field implements cells.Hierarchy.
func (h *hierarchy) Field(path string) (source.Field, int64, error) {
	c, err := h.Column(path)
	return c.Field, c.Count, err
}

// Column implements cells.Hierarchy.
func (h *hierarchy) Column(path string) (c array.Column, err error) {
	a, err := h.find(path)
	if err != nil {
		return c, err
	}
	if a.IsText() {
		return textColumn(h.ctx, a), nil
	}
	return newColumn(h.ctx, h.source, a, h.pool)
}

// Numbers implements cells.Hierarchy.
func (h *hierarchy) Numbers(path string) (array.Records, tensor.DType, error) {
	a, err := h.find(path)
	if err != nil {
		return nil, tensor.Invalid, err
	}
	spec, err := a.Spec()
	if err == nil && len(spec.Shape) > 0 {
		err = fmt.Errorf("%s has %d axes, and not one: %w", path, len(spec.Shape)+1, meta.ErrUnsupported)
	}
	if err != nil {
		return nil, tensor.Invalid, err
	}
	r, err := a.Reader(chunk.Options{Pool: h.pool})
	return r, spec.DType, err
}

// Check implements cells.Hierarchy. An array is refused if it promises more values than its files hold compressed a
// thousandfold; the sizes of the files are looked up only for large arrays, as each may cost a request.
func (h *hierarchy) Check(path string) error {
	a, err := h.find(path)
	if err == nil && len(a.Shape) != 1 {
		err = fmt.Errorf("%s is not one axis of values: %w", path, meta.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	size := int64(4) // of the length of a text
	if spec, err := a.Spec(); err == nil {
		size = int64(spec.DType.Size())
	}
	// So few values fit in memory whatever the files say.
	if a.Records() <= 64<<20/size {
		return nil
	}
	stored, err := a.Stored()
	if err == nil && a.Records() > (64<<20+1024*stored)/size {
		err = fmt.Errorf("%s has %d values in files of %d bytes: %w", path, a.Records(), stored, meta.ErrCorrupt)
	}
	return err
}

// textColumn returns the column of an array of texts. All texts are read on first use and stay in memory: they are
// names and labels, which are needed as a whole.
func textColumn(ctx context.Context, a *zarr.Array) array.Column {
	c := array.Column{Field: source.ContentField(layout.FieldName(a.Path), tensor.Text), Count: a.Records()}
	c.Field.Origin = a.Path
	c.Open = func() (array.Cursor, error) { return &textCursor{ctx: ctx, array: a}, nil }
	return c.Held()
}

// textCursor reads an array of texts chunk by chunk.
type textCursor struct {
	ctx   context.Context
	array *zarr.Array
	chunk int64    // number of the next chunk
	rest  [][]byte // texts of the chunk that were not returned yet
}

// Next implements array.Cursor.
func (c *textCursor) Next() (text []byte, err error) {
	if len(c.rest) == 0 {
		if c.chunk*c.array.ChunkRecords() >= c.array.Records() {
			return nil, io.EOF
		}
		if c.rest, err = c.array.Texts(c.ctx, c.chunk); err != nil {
			return nil, err
		}
		c.chunk++
	}
	text, c.rest = c.rest[0], c.rest[1:]
	return text, nil
}

// Close implements array.Cursor.
func (c *textCursor) Close() error { return nil }
