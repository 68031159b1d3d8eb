package meta

import (
	"path"
	"strings"
)

// Dimensions returns the names of the axes, as the HDF5 dimension scales specification defines them: the label of an
// axis (DIMENSION_LABELS) or, without one, the name of the first scale of the axis (DIMENSION_LIST), which is a
// dataset. The axis of a scale has the scale's own name. An axis without a name is ""; nil means that no axis has one.
//
// The attributes are only descriptions, so one that cannot be read names no axis and is no error.
func (d *Dataset) Dimensions() []string {
	names := make([]string, len(d.Dims))
	if a, ok := d.Attrs.Get("DIMENSION_LABELS"); ok {
		if labels, ok := a.Value.Strings(); ok && len(labels) == len(names) {
			copy(names, labels)
		}
	}
	for axis, scale := range d.scales() {
		if names[axis] == "" {
			names[axis] = scale
		}
	}
	if len(names) == 1 && names[0] == "" && d.IsScale() {
		names[0] = path.Base(d.Path)
	}
	if strings.Join(names, "") == "" {
		return nil
	}
	return names
}

// IsScale reports whether the dataset is a dimension scale: the coordinates of an axis of other datasets.
func (d *Dataset) IsScale() bool {
	a, ok := d.Attrs.Get("CLASS")
	if !ok {
		return false
	}
	text, _ := a.Value.Text()
	return text == "DIMENSION_SCALE"
}

// IsDimension reports whether the dataset is a scale without values, which netCDF-4 writes for axes without
// coordinates.
func (d *Dataset) IsDimension() bool {
	a, ok := d.Attrs.Get("NAME")
	if !ok || !d.IsScale() {
		return false
	}
	text, _ := a.Value.Text()
	return strings.HasPrefix(text, "This is a netCDF dimension but not a netCDF variable")
}

// IsCoordinate reports whether the dataset has one axis and its name, as coordinates of netCDF have.
func (d *Dataset) IsCoordinate() bool {
	names := d.Dimensions()
	return len(names) == 1 && names[0] == path.Base(d.Path)
}

// scales returns the name of the first scale of each axis; nil if they cannot be read.
func (d *Dataset) scales() (names []string) {
	a, ok := d.Attrs.Get("DIMENSION_LIST")
	if !ok || d.file == nil {
		return nil
	}
	var err error
	defer func() {
		if err != nil {
			names = nil
		}
	}()
	defer guard(&err)
	s := d.file.session(nil)
	c := &cursor{Src: s, B: a.Value.Raw, What: "dimension scales"}
	if size := 8 + s.OffSize; len(a.Value.Raw) != size*len(d.Dims) {
		return nil
	}
	heaps := globalHeaps{}
	for range d.Dims {
		n, addr, index := c.U32(), c.Addr(), c.U32()
		name := ""
		if n > 0 && addr != 0 && addr != undef {
			var p []byte
			if p, err = heaps.Object(s, addr, index); err != nil {
				return nil
			}
			name = d.file.scales[s.Abs((&cursor{Src: s, B: p, What: "reference"}).Addr())]
		}
		names = append(names, name)
	}
	return names
}
