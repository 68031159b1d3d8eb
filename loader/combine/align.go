package combine

import (
	"fmt"
	"maps"
	"slices"
)

// Align is the scale of a field of another resolution along an axis: origin i of a Window is at its
// element floor(i * Times / Per) + Offset. A mask of 1 km next to fields of 10 km has Times 10, and these next to the
// mask have Per 10. The zero value is the resolution of the others.
type Align struct {
	Times  int `json:"times,omitempty"` // 0 is 1
	Per    int `json:"per,omitempty"`   // 0 is 1
	Offset int `json:"offset,omitempty"`
}

// The largest numbers of an Align, so that none overflows.
const (
	maxTimes  = 1 << 20
	maxOffset = 1 << 40
)

// check reports an invalid Align.
func (a Align) check() error {
	if a.Times < 0 || a.Per < 0 || a.Times > maxTimes || a.Per > maxTimes {
		return fmt.Errorf("%d times per %d; both must be from 1 to %d", a.Times, a.Per, maxTimes)
	}
	if a.Offset < -maxOffset || a.Offset > maxOffset {
		return fmt.Errorf("an offset of %d, which is beyond any array", a.Offset)
	}
	return nil
}

// checkAligns reports an Align of a field or an axis that does not exist, or is not cut.
func (w *Window) checkAligns(list []array) error {
	for _, name := range slices.Sorted(maps.Keys(w.Align)) {
		i := slices.IndexFunc(list, func(a array) bool { return a.spec.Name == name })
		if i < 0 {
			return fmt.Errorf("Align has a field %q, which there is not", name)
		}
		for _, axis := range slices.Sorted(maps.Keys(w.Align[name])) {
			if w.Sizes[axis] == 0 || !slices.Contains(list[i].dims, axis) {
				return fmt.Errorf("Align of %q has the axis %q, which is not one of %q that Sizes cuts", name, axis, list[i].dims)
			}
			if err := w.Align[name][axis].check(); err != nil {
				return fmt.Errorf("Align of %q: axis %q: %w", name, axis, err)
			}
		}
	}
	return nil
}

// cut describes how an axis of a field is cut.
type cut struct {
	axis       int // -1 stays whole
	n          int // elements in the field
	size       int
	dilation   int
	lead       int // from the element of the origin to the first one
	times, per int // elements of the field for those of the axis
	offset     int // of the element of origin 0
	aligned    bool
}

// start returns the first element of the window with an origin.
func (c *cut) start(origin int) int {
	if c.times == 1 && c.per == 1 {
		return origin + c.offset + c.lead
	}
	return floorDiv(origin*c.times, c.per) + c.offset + c.lead
}

// span returns how far the last element of a window is after its first one.
func (c *cut) span() int { return (c.size - 1) * c.dilation }

// within returns the elements of the field that belong to elements [lo, hi) of an axis of n. Disjoint ranges have
// disjoint elements.
func (c *cut) within(lo, hi, n int) (first, end int) {
	if !c.aligned {
		return lo, hi
	}
	first, end = 0, c.n
	if lo > 0 {
		first = min(max(0, floorDiv(lo*c.times, c.per)+c.offset), c.n)
	}
	if hi < n {
		end = min(max(0, floorDiv(hi*c.times, c.per)+c.offset), c.n)
	}
	return first, end
}

// origins returns the range of origins whose windows are within elements [lo, hi) of the field.
func (c *cut) origins(lo, hi int) (first, end int) {
	return ceilDiv((lo-c.offset-c.lead)*c.per, c.times), ceilDiv((hi-c.span()-c.offset-c.lead)*c.per, c.times)
}

func floorDiv(a, n int) int { return (a - mod(a, n)) / n }

func ceilDiv(a, n int) int { return -floorDiv(-a, n) }
