package unit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// findCoordinates finds the members of the first unit that are the coordinates of an axis of the chosen members. They
// need not be chosen themselves.
func (c *Columns) findCoordinates(first []Member) {
	c.coordinates = make(map[string]string)
	for _, w := range c.members {
		c.axis = cmp.Or(c.axis, w.Axis)
	}
	for _, m := range first {
		if m.Err != nil || m.Axis == "" || m.Axis != path.Base(m.Name) || len(m.Field.Dims) != 1 {
			continue
		}
		if m.Axis == c.axis || slices.ContainsFunc(c.members, func(w wanted) bool { return slices.Contains(w.Field.Dims, m.Axis) }) {
			c.coordinates[m.Axis] = m.Name
		}
	}
	if c.records.File == "" {
		return
	}
	c.Coordinates = make(map[string]source.Coordinates)
	for axis, name := range c.coordinates {
		in := source.Coordinates{Path: c.records.File, Name: name}
		if axis == c.axis {
			in.Path = ""
		}
		c.Coordinates[axis] = in
	}
}

// compare returns an error if units differ in the coordinates of axes within a row: a place in a row would mean
// something else in each. Two regions of a map have images of one shape, and must not become one field. It also
// returns an error if the coordinates of the rows do not continue from file to file.
func (c *Columns) compare() error {
	if len(c.coordinates) == 0 {
		return nil
	}
	axes := slices.Sorted(maps.Keys(c.coordinates))
	var members []string
	for _, axis := range axes {
		members = append(members, c.coordinates[axis])
	}
	want, ids, rows := make([][]byte, len(axes)), make(map[string]string), newCourse(c.coordinates[c.axis])
	for k, u := range c.units {
		columns, closer, err := u.Open(members)
		for i := 0; i < len(columns) && err == nil; i++ {
			if columns[i].Open == nil {
				if axes[i] != c.axis {
					err = fmt.Errorf("there is no %s, which %s has%s", members[i], c.units[0].Name(), apart)
				}
				continue
			}
			var values []byte
			values, err = columns[i].All(nil)
			switch {
			case err != nil:
			case axes[i] == c.axis:
				rows.add(k, columns[i].Field.Spec, values)
			case k == 0:
				want[i] = values
				ids[axes[i]] = layout.CoordinatesID(columns[i].Field.DType, values)
			case !bytes.Equal(values, want[i]):
				err = fmt.Errorf("%s has other values than in %s%s", members[i], c.units[0].Name(), apart)
			}
		}
		if closer != nil {
			err = errors.Join(err, closer.Close())
		}
		if err != nil {
			return within(u, err)
		}
	}
	for i := range c.members {
		c.members[i].Field.SetCoordinates(func(axis string) string { return ids[axis] })
	}
	if c.records.File == "" {
		return nil
	}
	return rows.check(c.units)
}

// apart says how units whose coordinates differ are read together. A dataset has no coordinates that could differ.
const apart = "; if their records belong together all the same, make a dataset of each: penstock preprocess FILE DEST, and " +
	"load the datasets as a list"

// course is the first and last coordinates of rows, unit by unit.
type course struct {
	member  string
	meaning string
	runs    []run
	unknown bool // some unit has no coordinates, or coordinates that do not ascend or descend, or other units of time
}

// run is the coordinates of the rows of a unit.
type run struct {
	unit        int
	first, last tensor.Number
	direction   int // 1 if they ascend, -1 if they descend, 0 for one value
}

func newCourse(member string) *course { return &course{member: member} }

// add adds the coordinates of the rows of a unit.
func (c *course) add(unit int, spec tensor.Spec, values []byte) {
	size := spec.DType.Size()
	if len(values) == 0 {
		return
	}
	r := run{unit: unit, first: spec.DType.Read(values), last: spec.DType.Read(values[len(values)-size:])}
	r.direction = compare(r.last, r.first)
	last := r.first
	for b := values[size:]; len(b) > 0; b = b[size:] {
		next := spec.DType.Read(b)
		c.unknown = c.unknown || compare(next, last) != r.direction
		last = next
	}
	if len(c.runs) == 0 {
		c.meaning = spec.Meaning
	}
	c.unknown = c.unknown || spec.Meaning != c.meaning
	c.runs = append(c.runs, r)
}

// check returns an error if the coordinates of a file do not come after the coordinates of the file before it, so that
// consecutive records would not be consecutive in time. Files that all begin with the same coordinate are not one axis:
// each is a series of its own, such as a run of a simulation. A gap between files is no error.
//
// xarray's open_mfdataset(combine="by_coords") sorts files by their coordinates, and refuses overlaps. Here the order of
// names stays: it numbers the records of every source, also where a file is added later.
func (c *course) check(units []Unit) error {
	if c.unknown || len(c.runs) < 2 {
		return nil
	}
	direction, series := 0, true
	for _, r := range c.runs {
		direction = cmp.Or(direction, r.direction)
		series = series && compare(r.first, c.runs[0].first) == 0
	}
	if series {
		return nil
	}
	direction = cmp.Or(direction, compare(c.runs[1].first, c.runs[0].first))
	for i, r := range c.runs[1:] {
		if before := c.runs[i]; compare(r.first, before.last) != direction {
			return fmt.Errorf("%s: %s begins at %v, which does not follow %v, the last in %s, the file before it by name; rename "+
				"the files in the order of %[2]s, or join them as they are with a list of files in the order that is meant",
				units[r.unit].Name(), c.member, r.first, before.last, units[before.unit].Name())
		}
	}
	return nil
}

// compare compares numbers: whole numbers exactly.
func compare(a, b tensor.Number) int {
	x, whole := a.Int64()
	y, too := b.Int64()
	if whole && too {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a.Float64(), b.Float64())
}
