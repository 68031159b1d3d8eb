package zarr

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/cells"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// File is an open hierarchy.
type File struct {
	whole  *hierarchy
	closer io.Closer
}

// OpenFile opens a hierarchy that is a unit, or has units in it.
func OpenFile(ctx context.Context, root *vfs.Root, path string) (*File, error) {
	files, closer, err := Files(ctx, root, path)
	if err != nil {
		return nil, err
	}
	g, err := zarr.Open(files)
	if err != nil {
		return nil, errors.Join(err, closer.Close())
	}
	return &File{newHierarchy(ctx, path, g, chunk.NewPool(0)), closer}, nil
}

// Close lets go of the files.
func (f *File) Close() error {
	f.whole.pool.Close()
	return f.closer.Close()
}

// Cells returns the cells as a unit; nil of a hierarchy that has none.
func (f *File) Cells() unit.Unit { return cells.Of(f.whole) }

// Units returns the groups and arrays that a declaration names.
func (f *File) Units(records *unit.Records) ([]unit.Unit, error) {
	return unitsOf(f.whole.ctx, f.whole.source, f.whole.group, f.whole.pool, records)
}

// Unit returns the group or array at a path as a unit; "" is all of the hierarchy.
func (f *File) Unit(path string) (unit.Unit, error) {
	if c := f.Cells(); path == "" && c != nil {
		return c, nil
	}
	u := f.whole.unitOf
	u.name = path
	for _, a := range u.group.Arrays {
		if path == "" || a.Path == path || strings.HasPrefix(a.Path, path+"/") {
			u.arrays = append(u.arrays, a)
		}
	}
	return &u, nil
}

// unitOf is a group, or an array, as a unit.
type unitOf struct {
	ctx    context.Context
	source string
	group  *zarr.Group
	pool   *chunk.Pool
	name   string
	arrays []*zarr.Array // that are in it
}

// unitsOf returns the groups and arrays of a hierarchy that a declaration names, in the order of their names. Numbers
// in names count as numbers: demo_10 comes after demo_9, as people count episodes.
func unitsOf(ctx context.Context, path string, g *zarr.Group, pool *chunk.Pool, records *unit.Records) (
	list []unit.Unit, err error) {
	var order [][]string
	found := make(map[string]*unitOf)
	var tops []string
	for _, a := range g.Arrays {
		names := strings.Split(a.Path, "/")
		tops = append(tops, names[0])
		if n := len(records.Levels); len(names) >= n && records.Contains(a.Path) {
			name := strings.Join(names[:n], "/")
			if found[name] == nil {
				found[name] = &unitOf{ctx: ctx, source: path, group: g, pool: pool, name: name}
				order = append(order, names[:n])
			}
			found[name].arrays = append(found[name].arrays, a)
		}
	}
	if order == nil {
		slices.Sort(tops)
		return nil, fmt.Errorf("records %q: no group or array has such a path; at the top are %s", records,
			source.Enumerate(slices.Compact(tops), 12))
	}
	slices.SortFunc(order, func(a, b []string) int { return slices.CompareFunc(a, b, unit.Compare) })
	for _, names := range order {
		list = append(list, found[strings.Join(names, "/")])
	}
	return list, nil
}

// Name implements unit.Unit.
func (u *unitOf) Name() string { return u.name }

// memberName returns the name in the unit of one of its arrays.
func (u *unitOf) memberName(a *zarr.Array) string {
	if a.Path == u.name {
		return unit.Lone
	} else if u.name == "" {
		return a.Path
	}
	return strings.TrimPrefix(a.Path, u.name+"/")
}

// Members implements unit.Unit.
func (u *unitOf) Members() (list []unit.Member, err error) {
	for _, a := range u.arrays {
		c, err := newColumn(u.ctx, u.source, a.Rows(), u.pool)
		m := unit.Member{Name: u.memberName(a), Field: c.Field, Rows: c.Count, Err: err, Meaning: meaning(a.Attributes)}
		switch {
		case err != nil:
			m.Err = fmt.Errorf("%w%s", err, Remedy(u.source, err))
		case a.Scalar():
			m.Rows = -1
		case len(a.Dimensions) > 0:
			m.Axis = a.Dimensions[0]
		}
		list = append(list, m)
	}
	return list, nil
}

// meaning returns the attributes that change what numbers mean in netCDF, such as units and scale_factor. Units of one
// field must agree in them, or 20 could be degrees in one file and Fahrenheit in the next.
func meaning(attributes zarr.Attributes) string {
	var words []string
	for _, name := range unit.Meanings {
		if value, ok := attributes[name]; ok {
			words = append(words, name+" "+string(value))
		}
	}
	return strings.Join(words, ", ")
}

// Open implements unit.Unit.
func (u *unitOf) Open(members []string) ([]array.Column, io.Closer, error) {
	columns := make([]array.Column, len(members))
	for _, a := range u.arrays {
		i := slices.Index(members, u.memberName(a))
		if i < 0 {
			continue
		}
		var err error
		if columns[i], err = newColumn(u.ctx, u.source, a.Rows(), u.pool); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", a.Path, err)
		}
	}
	return columns, nil, nil
}

// Attribute implements unit.Unit.
func (u *unitOf) Attribute(name string) (a unit.Attribute, ok bool) {
	attributes := u.group.Groups[u.name]
	if name, ok = strings.CutPrefix(name, "/"); ok {
		attributes = u.group.Attributes
	} else if len(u.arrays) == 1 && u.arrays[0].Path == u.name {
		attributes = u.arrays[0].Attributes
	}
	var value any
	d := json.NewDecoder(strings.NewReader(string(attributes[name])))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return a, false
	}
	switch x := value.(type) {
	case string:
		return unit.Attribute{Field: source.ContentField(name, tensor.Text), Value: []byte(x)}, true
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return unit.Attribute{Field: source.NumberField(name, tensor.Int64),
				Value: binary.LittleEndian.AppendUint64(nil, uint64(n))}, true
		}
		if n, err := x.Float64(); err == nil {
			return unit.Attribute{Field: source.NumberField(name, tensor.Float64),
				Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(n))}, true
		}
	}
	return a, false
}

// alike returns a declaration of records for a hierarchy of sibling groups with the same arrays, such as data/demo_0
// and data/demo_1: data/*. It is nil for any other hierarchy.
func alike(ctx context.Context, path string, g *zarr.Group, pool *chunk.Pool) (*unit.Records, []unit.Unit) {
	siblings := g.Siblings()
	if siblings == nil {
		return nil, nil
	}
	levels := strings.Split(siblings[0], "/")
	for i, name := range levels {
		levels[i] = escape.Replace(name)
	}
	levels[len(levels)-1] = "*"
	records := &unit.Records{Levels: levels}
	units, err := unitsOf(ctx, path, g, pool, records)
	if err != nil {
		return nil, nil
	}
	return records, units
}

// escape makes a pattern that a name alone matches.
var escape = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "\\[")

// find returns the units of a hierarchy, as a declaration says or as they are guessed, with a hint for people; nil of a
// hierarchy whose arrays are columns.
func find(ctx context.Context, path string, g *zarr.Group, pool *chunk.Pool, opts source.Options,
	selection []column.Selection) (
	records *unit.Records, units []unit.Unit, hint string, err error) {
	c := cells.Of(newHierarchy(ctx, path, g, pool))
	switch {
	case opts.Records != "":
		records, err = unit.Parse(opts.Records)
		switch {
		case err != nil:
		case c != nil && slices.Equal(records.Levels, []string{"*"}): // as of a glob that matches one hierarchy
			units = []unit.Unit{c}
		default:
			units, err = unitsOf(ctx, path, g, pool, records)
		}
		return records, units, "", err
	case c != nil:
		return &unit.Records{Rows: true}, []unit.Unit{c}, "", nil
	}
	if slices.ContainsFunc(selection, func(w column.Selection) bool {
		return slices.ContainsFunc(g.Arrays, func(a *zarr.Array) bool { return a.Path == strings.Trim(w.Column, "/") })
	}) {
		return nil, nil, "", nil
	}
	if records, units = alike(ctx, path, g, pool); records == nil {
		return nil, nil, "", nil
	}
	certain, err := unit.Guess(units, records, selection)
	if err == nil && !certain {
		err = unit.Ambiguous(units, records)
	}
	return records, units, records.Guessed(), err
}
