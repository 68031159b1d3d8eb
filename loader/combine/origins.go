package combine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/tensor"
)

// origins computes the position of each record's window. A grid is computed from the record's
// number, so that billions of windows take no memory; only a table of the caller is stored.
type origins struct {
	n     int
	axes  []axis
	table []int // of Window.Origins; nil for a grid

	// runAxis is the axis of groups and ranges, -1 if there is no such axis. The fields below have the axis's runs, and
	// for each run the number of origins up to its end.
	runAxis int
	runs    [][2]int
	ends    []int
	firsts  []int // the first origin of each run
}

// newOrigins returns the origins of a Window.
func newOrigins(ctx context.Context, w *Window, axes []axis, parts []member) (*origins, error) {
	if w.Keep != "" && w.Keep != KeepFull && w.Keep != KeepPartial {
		return nil, fmt.Errorf("keep is %q; it must be full or partial", w.Keep)
	}
	for _, a := range axes {
		if a.pad == "" && w.Keep == KeepPartial {
			return nil, fmt.Errorf("keep is partial, and pad does not say what is beyond the edges of axis %q; choose "+
				"constant, edge, reflect or wrap", a.name)
		}
		if a.pad != "" && a.pad != PadWrap && w.Keep == KeepFull {
			return nil, fmt.Errorf("keep is full, so that nothing of axis %q is padded; leave its pad out", a.name)
		}
	}
	o := &origins{n: 1, axes: axes, runAxis: -1, table: w.Origins}
	if err := o.setRuns(ctx, w, parts); err != nil {
		return nil, err
	}
	if w.Origins != nil {
		return o, o.checkTable(w)
	}
	for i := range axes {
		a := &axes[i]
		if i == o.runAxis {
			a.count = o.addRuns(a)
		} else {
			a.first, a.count = a.grid([2]int{0, a.n})
		}
		if a.count == 0 {
			return nil, fmt.Errorf("axis %q: no window fits: windows have %d elements, from %d to %d of the origin, and the "+
				"axis has %d%s%s",
				a.name, a.most-a.least+1, a.least, a.most, a.n, o.longest(i), a.begins())
		}
		if o.n > (1<<62)/a.count {
			return nil, errors.New("there are more windows than can be numbered")
		}
		o.n *= a.count
	}
	return o, nil
}

// grid returns the first origin of a run, and the number of origins. Without padding, windows must
// lie within the run.
func (a *axis) grid(run [2]int) (first, count int) {
	first, end := run[0], run[1]
	if a.pad == "" {
		first, end = first-min(0, a.least), end-max(0, a.most)
	}
	if first += a.offset; first >= end {
		return first, 0
	}
	return first, (end-first-1)/a.stride + 1
}

// begins returns where the first window is, for messages, if it is not at the first possible place.
func (a *axis) begins() string {
	if a.offset == 0 {
		return ""
	}
	return fmt.Sprintf("; the first window is %d after the first possible one", a.offset)
}

// addRuns adds the origins of all runs to o.ends and o.firsts, and returns their number.
func (o *origins) addRuns(a *axis) (n int) {
	for _, r := range o.runs {
		first, count := a.grid(r)
		n += count
		o.ends, o.firsts = append(o.ends, n), append(o.firsts, first)
	}
	return n
}

// longest describes the lengths of an axis's runs for an error.
func (o *origins) longest(i int) string {
	if i != o.runAxis {
		return ""
	}
	most := 0
	for _, r := range o.runs {
		most = max(most, r[1]-r[0])
	}
	return fmt.Sprintf(", in groups and ranges of at most %d", most)
}

// setRuns finds the groups and ranges that no window may cross.
func (o *origins) setRuns(ctx context.Context, w *Window, parts []member) error {
	if w.Ranges == nil && w.Along != "" {
		return errors.New("along is the axis of ranges, which are missing")
	}
	if w.Group == "" && w.Ranges == nil {
		return nil
	}
	if err := o.findRunAxis(w, parts); err != nil {
		return err
	}
	a := &o.axes[o.runAxis]
	for i, r := range w.Ranges {
		if r[0] < 0 || r[1] <= r[0] || r[1] > a.n {
			return fmt.Errorf("range %d is [%d, %d); axis %q has %d elements", i, r[0], r[1], a.name, a.n)
		}
		if i > 0 && r[0] < w.Ranges[i-1][1] {
			return fmt.Errorf("range %d begins at %d, before the end of the one before it, %d; give ranges in ascending order "+
				"that do not overlap", i, r[0], w.Ranges[i-1][1])
		}
	}
	o.runs = w.Ranges
	if w.Ranges == nil {
		o.runs = [][2]int{{0, a.n}}
	}
	if w.Group != "" {
		cuts, err := borders(ctx, &parts[0], w.Group)
		if err != nil {
			return fmt.Errorf("group: %w", err)
		}
		o.runs = divide(o.runs, cuts)
	}
	return nil
}

// findRunAxis finds the axis that groups and ranges divide.
func (o *origins) findRunAxis(w *Window, parts []member) error {
	n, name := parts[0].Len(), "0"
	if dims := w.Dims[w.Group]; dims != nil {
		name = dims[0]
	}
	o.runAxis = slices.IndexFunc(o.axes, func(a axis) bool { return a.name == name })
	if o.runAxis < 0 { // by another name in the fields of the records
		o.runAxis = slices.IndexFunc(o.axes, func(a axis) bool { return a.of == 0 && a.n == n })
	}
	if w.Along != "" {
		along := slices.IndexFunc(o.axes, func(a axis) bool { return a.name == w.Along })
		if along < 0 {
			return fmt.Errorf("along is %q, which is not an axis that windows have an origin on: %s", w.Along,
				o.names())
		}
		if w.Group != "" && along != o.runAxis {
			return fmt.Errorf("groups are of the records, and ranges of axis %q; use one, or select records first",
				w.Along)
		}
		o.runAxis = along
	}
	if o.runAxis < 0 {
		return errors.New("groups and ranges are of the records, whose axis is in no window; give it a size, or name the " +
			"axis of ranges in along")
	}
	return nil
}

// divide cuts ranges at the borders.
func divide(ranges [][2]int, borders []int) (out [][2]int) {
	for _, r := range ranges {
		at := r[0]
		for k := sort.SearchInts(borders, at+1); k < len(borders) && borders[k] < r[1]; k++ {
			out = append(out, [2]int{at, borders[k]})
			at = borders[k]
		}
		out = append(out, [2]int{at, r[1]})
	}
	return out
}

// borders returns the records at which the value of a field differs from the record before, or that begin another
// source of a [Concat]: the number of an episode counts in one source, and means another episode in the next. A NaN is an
// error: NaN differs from itself, so that every record would begin a group.
func borders(ctx context.Context, src *member, field string) (list []int, err error) {
	specs := src.Specs()
	i := fieldOf(specs, field)
	if i < 0 {
		return nil, fmt.Errorf("there is no field %q; there are: %s", field, names(specs))
	}
	if specs[i].Ragged {
		return nil, fmt.Errorf("records of %q have variable length", field)
	}
	if err := src.Retain(); err != nil {
		return nil, err
	}
	defer src.Release()
	const step = 1 << 14
	size := specs[i].RecordBytes()
	indices, data, last, from := make([]int, step), make([]byte, step*size), []byte(nil), uint64(0)
	for at := 0; at < src.Len(); at += step {
		n := min(step, src.Len()-at)
		order.Consecutive(at, indices[:n])
		if err := src.Gather(ctx, field, indices[:n], data[:n*size]); err != nil {
			return nil, err
		}
		for k := range n {
			value := data[k*size : (k+1)*size]
			if specs[i].DType.IsFloat() && !comparable(value, specs[i].DType) {
				return nil, fmt.Errorf("record %d of %q is NaN, which equals no other value and so belongs to no "+
					"group; give it a value, or select the other records first", at+k, field)
			}
			in := sourceOf(src.Source, field, at+k)
			if last != nil && (in != from || !bytes.Equal(value, last)) {
				list = append(list, at+k)
			}
			last, from = append(last[:0], value...), in
		}
	}
	return list, nil
}

// sourceOf returns a number for the source that a record of a field is in, below all views and Concats: a hash of its
// places in them. A Concat may have one source twice.
func sourceOf(src loader.Source, field string, record int) (hash uint64) {
	for {
		var r *route
		switch s := src.(type) {
		case *Concat:
			r = &s.route
		case *View:
			r = &s.route
		default:
			return hash
		}
		s, err := r.at(field, record, record+1)
		if err != nil {
			return hash
		}
		if len(r.ends) > 1 {
			hash = (hash ^ uint64(s.segment+1)) * 1099511628211 // as FNV-1a
		}
		src, field, record = s.Source, s.field, s.first
	}
}

// comparable makes equal floats equal bytes (0 and -0 differ in a bit), and returns false if a
// float is NaN.
func comparable(floats []byte, d tensor.DType) bool {
	for size := d.Size(); len(floats) > 0; floats = floats[size:] {
		x := d.Read(floats).Float64()
		if math.IsNaN(x) {
			return false
		}
		if x == 0 {
			clear(floats[:size])
		}
	}
	return true
}

// checkTable returns an error for the first invalid origin of a table.
func (o *origins) checkTable(w *Window) error {
	if w.Stride != nil || w.Offset != nil {
		return errors.New("stride and offset are for a grid of origins, and origins has them one by one; leave them out")
	}
	if len(o.table)%len(o.axes) != 0 {
		return fmt.Errorf("origins are %d numbers, and there are %d axes: %s; each record has a number for each", len(o.table), len(o.axes),
			o.names())
	}
	o.n = len(o.table) / len(o.axes)
	for i := range o.n {
		for k, x := range o.table[i*len(o.axes) : (i+1)*len(o.axes)] {
			a := &o.axes[k]
			lo, hi, ok := o.within(k, x)
			if !ok {
				return fmt.Errorf("origin %d is %d on axis %q, which has %d elements; origins must be inside the axis%s", i, x,
					a.name, a.n, o.longest(k))
			}
			if a.pad == "" && (x+a.least < lo || x+a.most >= hi) {
				return fmt.Errorf("origin %d is %d on axis %q, and its window has the elements from %d to %d of those from %d to "+
					"%d; choose a pad, or leave the origin out", i, x, a.name, x+a.least, x+a.most, lo, hi-1)
			}
		}
	}
	return nil
}

func (o *origins) names() (list string) {
	for i, a := range o.axes {
		if i > 0 {
			list += ", "
		}
		list += a.name
	}
	return list
}

// within returns the range [lo, hi) of elements of axis k that a window with origin x may have. On
// the axis that groups and ranges divide into runs, it is the run that contains x; on any other, the
// whole axis. ok is false if x is in no run, or outside the axis.
func (o *origins) within(k, x int) (lo, hi int, ok bool) {
	if k != o.runAxis {
		return 0, o.axes[k].n, x >= 0 && x < o.axes[k].n
	}
	i := sort.Search(len(o.runs), func(i int) bool { return o.runs[i][0] > x }) - 1
	if i < 0 || x >= o.runs[i][1] {
		return 0, 0, false
	}
	return o.runs[i][0], o.runs[i][1], true
}

// place is the position of a window: its origin on each axis, and the elements of the axis of runs
// that it may have. A place is passed by pointer and reused, because computing one must not
// allocate.
type place struct {
	at     [tensor.MaxRank]int
	lo, hi int
}

// of sets p to the place of a record.
func (o *origins) of(record int, p *place) {
	if o.runAxis >= 0 {
		p.lo, p.hi = 0, 0
	}
	if o.table != nil {
		copy(p.at[:], o.table[record*len(o.axes):(record+1)*len(o.axes)])
		if o.runAxis >= 0 {
			p.lo, p.hi, _ = o.within(o.runAxis, p.at[o.runAxis])
		}
		return
	}
	for k := len(o.axes) - 1; k >= 0; k-- {
		a := &o.axes[k]
		i := record
		if k > 0 {
			i, record = record%a.count, record/a.count
		}
		if k != o.runAxis {
			p.at[k] = a.first + i*a.stride
			continue
		}
		r := sort.SearchInts(o.ends, i+1)
		if r > 0 {
			i -= o.ends[r-1]
		}
		p.at[k], p.lo, p.hi = o.firsts[r]+i*a.stride, o.runs[r][0], o.runs[r][1]
	}
}

// bounds returns the range of indexes [lo, hi) that a window may have along an axis of a field.
func (o *origins) bounds(c *cut, p *place) (lo, hi int) {
	if c.axis == o.runAxis {
		return p.lo, p.hi
	}
	return 0, o.axes[c.axis].n
}
