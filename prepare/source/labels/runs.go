package labels

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// runMask is a binary mask in the run-length encoding of COCO's tools: the lengths of runs of 0 and 1 in turn,
// column after column, beginning with a run of 0. Masks have exactly the pixels that pycocotools computes.
type runMask struct {
	H, W   int
	Counts []uint32
}

// newMask returns a mask with these runs, whose lengths must add up to all pixels.
func newMask(counts []uint32, h, w int) (runMask, error) {
	total := uint64(0)
	for _, n := range counts {
		total += uint64(n)
	}
	// Paint relies on this check: it does not compare positions with the size of the mask.
	if total != uint64(h)*uint64(w) {
		return runMask{}, fmt.Errorf("run lengths of %d pixels for a mask of %dx%d", total, w, h)
	}
	return runMask{h, w, counts}, nil
}

// maskOfBits returns the mask of the pixels for which is returns true.
func maskOfBits(h, w int, is func(x, y int) bool) runMask {
	m := runMask{H: h, W: w}
	last, n := false, uint32(0)
	for x := range w {
		for y := range h {
			if is(x, y) != last {
				m.Counts = append(m.Counts, n)
				last, n = !last, 0
			}
			n++
		}
	}
	m.Counts = append(m.Counts, n)
	return m
}

// parseRuns reads the text form of run lengths (rleFrString of cocoapi's common/maskApi.c): numbers in groups of 5
// bits, the lowest first, as characters from 48 on, with a sixth bit for "more". From the fourth run on, a number
// is the difference from the run two before.
func parseRuns(text string, h, w int) (runMask, error) {
	var counts []uint32
	for i := 0; i < len(text); {
		x, more := int64(0), true
		for k := 0; more; k++ {
			if i == len(text) || k > 6 || text[i] < 48 || text[i] > 111 {
				return runMask{}, errors.New("run lengths that are not COCO's text form")
			}
			c := int64(text[i] - 48)
			x |= c & 0x1f << (5 * k)
			if more = c&0x20 != 0; !more && c&0x10 != 0 {
				x |= -1 << (5 * (k + 1))
			}
			i++
		}
		// The first three runs are stored as lengths, each later run as the difference to the run two places before.
		if n := len(counts); n > 2 {
			x += int64(counts[n-2])
		}
		if x < 0 || x > math.MaxUint32 {
			return runMask{}, fmt.Errorf("a run of %d pixels", x)
		}
		counts = append(counts, uint32(x))
	}
	return newMask(counts, h, w)
}

// Paint calls set with each run of 1 within a column: rows [y0, y1) of column x.
func (m runMask) Paint(set func(x, y0, y1 int)) {
	at := 0
	for i, n := range m.Counts {
		end := at + int(n)
		// A run goes on at the top of the next column.
		for i%2 == 1 && at < end {
			x, y := at/m.H, at%m.H
			stop := min(m.H, y+end-at)
			set(x, y, stop)
			at += stop - y
		}
		at = end
	}
}

// unionOfMasks returns the union of masks of one size (rleMerge of maskApi.c). It sweeps over the beginnings and
// ends of all runs, and counts how many masks have the pixels in between.
func unionOfMasks(masks ...runMask) runMask {
	if len(masks) == 1 {
		return masks[0]
	}
	var edges []outlineEdge
	for _, m := range masks {
		at := uint32(0)
		for i := 1; i < len(m.Counts); i += 2 {
			from := at + m.Counts[i-1]
			at = from + m.Counts[i]
			if from < at {
				edges = append(edges, outlineEdge{from, 1}, outlineEdge{at, -1})
			}
		}
	}
	slices.SortFunc(edges, func(a, b outlineEdge) int {
		if a.at != b.at {
			return int(int64(a.at) - int64(b.at))
		}
		return b.by - a.by // so that runs that touch are one
	})
	u := runMask{H: masks[0].H, W: masks[0].W}
	at, depth := uint32(0), 0
	for _, e := range edges {
		was := depth > 0
		if depth += e.by; was != (depth > 0) {
			u.Counts = append(u.Counts, e.at-at)
			at = e.at
		}
	}
	if rest := uint32(u.H*u.W) - at; rest > 0 || len(u.Counts) == 0 {
		u.Counts = append(u.Counts, rest)
	}
	return u
}

// outlineEdge is the beginning or end of a run.
type outlineEdge struct {
	at uint32
	by int // 1 for a beginning, -1 for an end
}

// maxSteps limits the points along the edges of a polygon, five for each pixel: more than the outline of any image
// has.
const maxSteps = 1 << 26

// polygonMask returns the pixels of a polygon, whose corners are x and y in turn (rleFrPoly of cocoapi's
// common/maskApi.c, by Piotr Dollar and Tsung-Yi Lin, 2015, Simplified BSD License). It follows the edges in steps
// of a fifth of a pixel, and fills a column between the steps that cross its center.
func polygonMask(xy []float64, h, w int) (runMask, error) {
	if len(xy) < 6 || len(xy)%2 != 0 {
		return runMask{}, fmt.Errorf("a polygon of %d numbers; three corners or more have x and y each", len(xy))
	}
	o := outline{h: h, w: w}
	steps := 0
	// The outline is closed: the last corner is before the first.
	last := outlinePoint{outlineScaled(xy[len(xy)-2]), outlineScaled(xy[len(xy)-1])}
	for i := 0; i < len(xy); i += 2 {
		for _, v := range xy[i : i+2] {
			// Negated, so that NaN is refused, too. With larger coordinates, the steps below would overflow.
			if !(math.Abs(v) <= 1e7) {
				return runMask{}, fmt.Errorf("a polygon with a corner at %v", v)
			}
		}
		p := outlinePoint{outlineScaled(xy[i]), outlineScaled(xy[i+1])}
		if steps += max(abs(p.x-last.x), abs(p.y-last.y)) + 1; steps > maxSteps {
			return runMask{}, errors.New("a polygon whose outline is longer than any picture's")
		}
		last = p
	}
	first := outlinePoint{outlineScaled(xy[0]), outlineScaled(xy[1])}
	for i := 0; i < len(xy); i += 2 {
		next := first
		if i+2 < len(xy) {
			next = outlinePoint{outlineScaled(xy[i+2]), outlineScaled(xy[i+3])}
		}
		o.line(outlinePoint{outlineScaled(xy[i]), outlineScaled(xy[i+1])}, next)
	}
	return runMask{h, w, o.runs()}, nil
}

// outlineScale is the number of steps in a pixel.
const outlineScale = 5

// outlineScaled returns a coordinate in steps, rounded like the C code.
func outlineScaled(v float64) int { return int(float64(outlineScale*v) + .5) }

func abs(x int) int { return max(x, -x) }

type outlinePoint struct{ x, y int }

// outline collects the points where the outline of a polygon crosses the centers of columns.
type outline struct {
	h, w    int
	last    outlinePoint
	begun   bool
	crosses []uint32 // numbers of pixels, column after column
}

// line follows the edge from a to b along its longer axis, as the C code does, so that rounding is the same.
func (o *outline) line(a, b outlinePoint) {
	dx, dy := abs(a.x-b.x), abs(a.y-b.y)
	flip := dx >= dy && a.x > b.x || dx < dy && a.y > b.y
	if flip {
		a, b = b, a
	}
	long := max(dx, dy)
	slope := 0.
	switch {
	case dx >= dy && dx > 0:
		slope = float64(b.y-a.y) / float64(dx)
	case dx < dy:
		slope = float64(b.x-a.x) / float64(dy)
	}
	for d := 0; d <= long; d++ {
		t := d
		if flip {
			t = long - d
		}
		if off := float64(slope * float64(t)); dx >= dy { // the conversion keeps a fused multiply-add from other bits
			o.step(outlinePoint{t + a.x, int(float64(float64(a.y)+off) + .5)})
		} else {
			o.step(outlinePoint{int(float64(float64(a.x)+off) + .5), t + a.y})
		}
	}
}

// step adds the next point of the outline. Only steps that change the column of steps, at the center of a pixel
// column, are crossings.
func (o *outline) step(p outlinePoint) {
	last := o.last
	o.last = p
	if !o.begun || p.x == last.x {
		o.begun = true
		return
	}
	x := p.x
	if p.x > last.x {
		x--
	}
	column := (float64(x)+.5)/outlineScale - .5
	if math.Floor(column) != column || column < 0 || column > float64(o.w-1) {
		return
	}
	row := (float64(min(p.y, last.y))+.5)/outlineScale - .5
	row = math.Ceil(max(0, min(row, float64(o.h))))
	o.crosses = append(o.crosses, uint32(int(column)*o.h+int(row)))
}

// runs returns the distances between the sorted crossings as runs. Two crossings at one pixel cancel out: their
// empty run joins its neighbors.
func (o *outline) runs() []uint32 {
	a := append(o.crosses, uint32(o.h*o.w))
	slices.Sort(a)
	last := uint32(0)
	for i, at := range a {
		a[i], last = at-last, at
	}
	b := a[:1]
	for i := 1; i < len(a); i++ {
		if a[i] > 0 {
			b = append(b, a[i])
		} else if i++; i < len(a) {
			b[len(b)-1] += a[i]
		}
	}
	return b
}
