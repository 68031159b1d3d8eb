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

// File is an open Zarr store.
type File struct {
	whole  *hierarchy
	closer io.Closer
}

// OpenFile opens a Zarr store that is a unit or has units in it.
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

// Close closes the files and ends the goroutines that decompress.
func (f *File) Close() error {
	f.whole.pool.Close()
	return f.closer.Close()
}

// Cells returns the cells of a single-cell store as a unit; nil for any other store.
func (f *File) Cells() unit.Unit { return cells.Of(f.whole) }

// Unit returns the group or array at a path as a unit; "" is the whole store.
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

// unitOf is a group or an array as a unit.
type unitOf struct {
	ctx    context.Context
	source string
	group  *zarr.Group
	pool   *chunk.Pool
	name   string
	arrays []*zarr.Array // the arrays of the unit
}

// Units returns the groups and arrays that a declaration names, in the order of their names. Numbers in names count as
// numbers: demo_10 comes after demo_9, as people count episodes.
func (f *File) Units(records *unit.Records) (list []unit.Unit, err error) {
	var order [][]string
	found := make(map[string]*unitOf)
	var tops []string
	for _, a := range f.whole.group.Arrays {
		names := strings.Split(a.Path, "/")
		tops = append(tops, names[0])
		if n := len(records.Levels); len(names) >= n && records.Contains(a.Path) {
			name := strings.Join(names[:n], "/")
			if found[name] == nil {
				u := f.whole.unitOf
				u.name, found[name] = name, &u
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

// memberName returns the name of an array within the unit.
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
		m := unit.Member{Name: u.memberName(a), Field: c.Field, Rows: c.Count, Err: err}
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

// Names reports whether a selection names an array.
func (f *File) Names(selection []column.Selection) bool {
	return slices.ContainsFunc(selection, func(w column.Selection) bool {
		return f.whole.arrays[strings.Trim(w.Column, "/")] != nil
	})
}

// Guess returns the declaration for sibling groups with the same arrays, such as data/* for data/demo_0 and
// data/demo_1, and the groups; nil for other stores. If a record may be either a group or a row of a group, the
// error says what to type.
func (f *File) Guess(selection []column.Selection) (*unit.Records, []unit.Unit, error) {
	siblings := f.whole.group.Siblings()
	if siblings == nil {
		return nil, nil, nil
	}
	levels := strings.Split(siblings[0], "/")
	for i, name := range levels {
		levels[i] = escape.Replace(name)
	}
	// The siblings differ in the last element of their paths only.
	levels[len(levels)-1] = "*"
	records := &unit.Records{Levels: levels}
	units, err := f.Units(records)
	if err != nil {
		return nil, nil, nil
	}
	certain, err := unit.Guess(units, records, selection)
	if err == nil && !certain {
		err = unit.Ambiguous(units, records)
	}
	return records, units, err
}

// escape turns a name into a glob that matches only the name.
var escape = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "\\[")
