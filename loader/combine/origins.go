package combine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/penstock/penstock/tensor"
)

// origins has the position of each record's window.
type origins struct {
	n     int
	axes  []axis
	table [][]int // nil for a grid

	// Of the axis of groups and ranges, -1 if there is none: its runs, the elements that windows of each may have,
	// and the origins in those up to each.
	runAxis int
	runs    [][2]int
	reach   [][2]int
	ends    []int
	firsts  []int // the first origin of each run
}

// newOrigins returns the origins of a Window.
func newOrigins(ctx context.Context, w *Window, axes []axis, parts []member) (*origins, error) {
	if w.Keep != "" && w.Keep != KeepFull && w.Keep != KeepPartial {
		return nil, fmt.Errorf("Keep is %q; it must be full or partial", w.Keep)
	}
	for _, a := range axes {
		if a.pad == "" && w.Keep == KeepPartial {
			return nil, fmt.Errorf("Keep is partial, and Pad does not say what is beyond the edges of axis %q; choose "+
				"constant, reflect or wrap", a.name)
		}
		if a.pad != "" && a.pad != PadWrap && w.Keep == KeepFull {
			return nil, fmt.Errorf("Keep is full, so that nothing of axis %q is padded; leave its Pad out", a.name)
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
			a.count = o.countRuns(a)
		} else {
			a.first, a.count = a.grid([2]int{0, a.n}, [2]int{0, a.n})
		}
		if a.count == 0 {
			return nil, fmt.Errorf("axis %q: no window fits: windows have %d elements, from %d to %d of the origin, and the "+
				"axis has %d%s%s",
				a.name, a.most-a.least+1, a.least, a.most, a.n, a.alignedCuts(), o.longest(i))
		}
		if o.n > (1<<62)/a.count {
			return nil, errors.New("there are more windows than can be numbered")
		}
		o.n *= a.count
	}
	return o, nil
}

// grid returns the first origin of a run, and how many it has. Labels have elements of the run, and the other
// fields of the reach around it.
func (a *axis) grid(run, reach [2]int) (first, count int) {
	first, end := reach[0], reach[1]
	for i := range a.cuts {
		c, of := &a.cuts[i], reach
		if c.label {
			of = run
		}
		lo, hi := c.within(of[0], of[1], a.n)
		if lo >= hi {
			return first, 0
		}
		if a.pad == "" || c.label {
			lo, hi = c.origins(lo, hi)
			first, end = max(first, lo), min(end, hi)
		}
	}
	if first += a.offset; first >= end {
		return first, 0
	}
	return first, (end-first-1)/a.stride + 1
}

// countRuns returns how many origins the runs have.
func (o *origins) countRuns(a *axis) (n int) {
	for i, r := range o.runs {
		first, count := a.grid(r, o.reach[i])
		n += count
		o.ends, o.firsts = append(o.ends, n), append(o.firsts, first)
	}
	return n
}

// alignedCuts describes the cuts of fields of another resolution, for errors.
func (a *axis) alignedCuts() (text string) {
	for _, c := range a.cuts {
		if c.aligned {
			text += fmt.Sprintf("; windows of %q have %d, from %d on, and that field has %d", c.field, c.span()+1, c.lead, c.n)
		}
	}
	return text
}

// longest describes the lengths of the runs of an axis.
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

// setRuns finds the groups and ranges.
func (o *origins) setRuns(ctx context.Context, w *Window, parts []member) error {
	if w.Ranges == nil && (w.Along != "" || w.Labels != nil) {
		return errors.New("Along and Labels say what Ranges are of, which are missing")
	}
	if w.Group == "" && w.Ranges == nil {
		return nil
	}
	if err := o.findRunAxis(w, parts); err != nil {
		return err
	}
	a := &o.axes[o.runAxis]
	labels := slices.ContainsFunc(a.cuts, func(c axisCut) bool { return c.label })
	if w.Labels != nil && !labels {
		return fmt.Errorf("no field of Labels has the axis %q, which Ranges are of", a.name)
	}
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
	groups := [][2]int{{0, a.n}}
	if w.Group != "" {
		cuts, err := borders(ctx, &parts[0], w.Group)
		if err != nil {
			return fmt.Errorf("group: %w", err)
		}
		o.runs, groups = divide(o.runs, cuts), divide(groups, cuts)
	}
	o.reach = o.runs
	if labels {
		o.reach = around(o.runs, groups)
	}
	return nil
}

// findRunAxis finds the axis of groups and ranges.
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
			return fmt.Errorf("Along is %q, which is not an axis that windows have an origin on: %s", w.Along,
				o.names())
		}
		if w.Group != "" && along != o.runAxis {
			return fmt.Errorf("groups are of the records, and Ranges of axis %q; use one, or select records first",
				w.Along)
		}
		o.runAxis = along
	}
	if o.runAxis < 0 {
		return errors.New("groups and ranges are of the records, whose axis is in no window; give it a size, or name the " +
			"axis of Ranges in Along")
	}
	return nil
}

// around returns the group of each run.
func around(runs, groups [][2]int) (out [][2]int) {
	for _, r := range runs {
		i := sort.Search(len(groups), func(i int) bool { return groups[i][1] > r[0] })
		out = append(out, groups[i])
	}
	return out
}

// divide cuts ranges at some places.
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

// borders returns the records at which the value of a field changes.
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
	indices, data, last := make([]int, step), make([]byte, step*size), []byte(nil)
	for at := 0; at < src.Len(); at += step {
		n := min(step, src.Len()-at)
		consecutive(at, indices[:n])
		if err := src.Gather(ctx, field, indices[:n], data[:n*size]); err != nil {
			return nil, err
		}
		for k := range n {
			value := data[k*size : (k+1)*size]
			if specs[i].DType.IsFloat() && !comparable(value, specs[i].DType) {
				return nil, fmt.Errorf("record %d of %q is NaN, which is equal to no other value, so that it is not that of a "+
					"group; give it a value, or select the other records first", at+k, field)
			}
			if last != nil && !bytes.Equal(value, last) {
				list = append(list, at+k)
			}
			last = append(last[:0], value...)
		}
	}
	return list, nil
}

// comparable gives equal floats equal bytes (0 and -0), and reports whether none is NaN.
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

// checkTable reports an invalid origin.
func (o *origins) checkTable(w *Window) error {
	if w.Stride != nil || w.Offset != nil {
		return errors.New("Stride and Offset are for a grid of origins, and Origins has them one by one; leave them out")
	}
	if w.Labels != nil {
		return errors.New("Labels are for a grid of origins, and Origins has them one by one; leave Labels out")
	}
	o.n = len(o.table)
	for i, at := range o.table {
		if len(at) != len(o.axes) {
			return fmt.Errorf("origin %d has %d numbers, and there are %d axes: %s", i, len(at), len(o.axes), o.names())
		}
		for k, x := range at {
			a := &o.axes[k]
			lo, hi, ok := o.within(k, x)
			if !ok {
				return fmt.Errorf("origin %d is %d on axis %q, which has %d elements%s", i, x, a.name, a.n, o.longest(k))
			}
			if err := a.checkOrigin(x, lo, hi); err != nil {
				return fmt.Errorf("origin %d is %d on axis %q: %w", i, x, a.name, err)
			}
		}
	}
	return nil
}

// checkOrigin reports an origin with windows that are beyond elements [lo, hi).
func (a *axis) checkOrigin(x, lo, hi int) error {
	for i := range a.cuts {
		c := &a.cuts[i]
		first, end := c.within(lo, hi, a.n)
		if at := c.start(x); first >= end || a.pad == "" && (at < first || at+c.span() >= end) {
			return fmt.Errorf("the window of %q has the elements from %d to %d, and those from %d to %d exist; choose a "+
				"Pad, or leave it out", c.field, at, at+c.span(), first, end-1)
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

// within returns the elements of an axis that windows with a given origin may have.
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

// place is the position of a window: its origin on each axis, and the elements of the axis of runs that it may have.
type place struct {
	at     [tensor.MaxRank]int
	lo, hi int
}

// of returns the place of a record.
func (o *origins) of(record int, p *place) {
	if o.runAxis >= 0 {
		p.lo, p.hi = 0, 0
	}
	if o.table != nil {
		copy(p.at[:], o.table[record])
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
		p.at[k], p.lo, p.hi = o.firsts[r]+i*a.stride, o.reach[r][0], o.reach[r][1]
	}
}

// bounds returns the elements of an axis of a field that a window may have.
func (o *origins) bounds(c *cut, p *place) (lo, hi int) {
	hi = o.axes[c.axis].n
	if c.axis == o.runAxis {
		lo, hi = p.lo, p.hi
	}
	return c.within(lo, hi, o.axes[c.axis].n)
}
