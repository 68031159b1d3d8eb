package hdf5

import (
	"fmt"
	"sort"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// selection maps the elements of a hyperslab selection, in their order, to positions in a dataset. Trailing axes
// that are selected as a whole are joined to runs of width elements, so that copies are long.
type selection struct {
	axes  []axis
	width int64
}

// axis is the selection along one axis: regular blocks, or a list of spans.
type axis struct {
	start, stride, block int64 // regular
	// By span: its first element, and the number of selected elements before it. nil for a regular axis.
	spans  [][2]int64
	count  int64 // how many elements are selected
	step   int64 // distance, in elements of the dataset, between neighbors on this axis
	length int64
}

// newSelection returns the places of a selection in a dataset of shape dims. Products of dims are compared with a limit
// before they are computed: the shape comes from the file.
func newSelection(s meta.Selection, dims []int64) (sel selection, err error) {
	if !s.All && len(s.Axes) != len(dims) {
		return sel, fmt.Errorf("a selection of %d axes of a dataset of %d: %w", len(s.Axes), len(dims), meta.ErrUnsupported)
	}
	step := int64(1)
	sel.axes = make([]axis, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		a := axis{block: dims[i], stride: dims[i], count: dims[i]}
		if !s.All {
			if a, err = newAxis(s.Axes[i], dims[i]); err != nil {
				return sel, err
			}
		}
		a.step, a.length = step, dims[i]
		sel.axes[i] = a
		if dims[i] > 0 && step > 1<<62/dims[i] {
			return sel, fmt.Errorf("shape %v: %w", dims, meta.ErrUnsupported)
		}
		step *= dims[i]
	}
	sel.width = 1
	// At least one axis is left, as records are along the first.
	for n := len(sel.axes); n > 1 && sel.axes[n-1].whole(); n-- { // join axes that are selected completely
		sel.width *= sel.axes[n-1].length
		sel.axes = sel.axes[:n-1]
	}
	return sel, nil
}

// newAxis checks a selection of one axis, as a virtual dataset stores it, against the axis' length: regular (start,
// stride, count, block) or a list of spans. Products of numbers from the file could overflow, so the checks subtract
// and divide instead.
func newAxis(s meta.AxisSelection, length int64) (a axis, err error) {
	outside := fmt.Errorf("a selection outside of %d elements: %w", length, meta.ErrUnsupported)
	if s.Unlimited {
		return a, fmt.Errorf("a selection without limit: %w", meta.ErrUnsupported)
	}
	if s.Spans != nil {
		for _, span := range s.Spans {
			if span[1] >= length {
				return a, outside
			}
			a.spans = append(a.spans, [2]int64{span[0], a.count})
			a.count += span[1] - span[0] + 1
		}
		return a, nil
	}
	if s.Count == 0 || s.Block == 0 {
		return a, nil
	}
	// Blocks that overlap would select an element twice.
	if s.Stride < s.Block && s.Count > 1 || s.Block > length || s.Count > length || s.Start > length-s.Block ||
		s.Count > 1 && s.Count-1 > (length-s.Block-s.Start)/s.Stride {
		return a, outside
	}
	a = axis{start: s.Start, stride: s.Stride, block: s.Block, count: s.Count * s.Block}
	if s.Stride == s.Block || s.Count == 1 {
		a.block, a.stride = a.count, a.count
	}
	return a, nil
}

// whole reports whether all elements of the axis are selected, in their order.
func (a *axis) whole() bool {
	return a.count == a.length && a.spans == nil && a.start == 0 && a.block == a.count
}

// at returns the place of selected element k on the axis, and how many selected elements lie side by side from it on,
// itself included.
func (a *axis) at(k int64) (place, run int64) {
	if a.spans == nil {
		in := k % a.block
		return a.start + k/a.block*a.stride + in, a.block - in
	}
	i := sort.Search(len(a.spans), func(i int) bool { return a.spans[i][1] > k }) - 1
	end := a.count
	if i+1 < len(a.spans) {
		end = a.spans[i+1][1]
	}
	return a.spans[i][0] + k - a.spans[i][1], end - k
}

// below returns the number of selected elements before a position on the axis.
func (a *axis) below(place int64) int64 {
	return int64(sort.Search(int(a.count), func(k int) bool { p, _ := a.at(int64(k)); return p >= place }))
}

// row returns the number of selected elements for each selected position of the first axis.
func (s *selection) row() int64 {
	n := s.width
	for _, a := range s.axes[1:] {
		n *= a.count
	}
	return n
}

// at returns the position of selected element k in the dataset, in C order, and the number of selected elements
// from it on that are contiguous there.
func (s *selection) at(k int64) (place, run int64) {
	// From the last axis to the first, as in the digits of a number.
	in := k % s.width
	k /= s.width
	place = in
	for i := len(s.axes) - 1; i >= 0; i-- {
		a := &s.axes[i]
		on := k
		if i > 0 {
			on = k % a.count
		}
		p, side := a.at(on)
		if i == len(s.axes)-1 {
			run = side*s.width - in
		}
		place += p * a.step
		k /= max(1, a.count)
	}
	return place, run
}
