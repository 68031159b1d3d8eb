package transforms

import (
	"fmt"
	"image"
	"math"
	"slices"
)

// Moves records where the pixels of one image went, operation by operation, so that labels on the
// image can follow: boxes and points by arithmetic on their corners, masks by sampling. Places are
// in corner coordinates: the pixel of column c and row r covers [c, c+1) x [r, r+1), which makes
// flips and resizes exact. A Moves is valid until its Runner works on the next image, and serves
// one goroutine.
type Moves struct {
	w, h    int // of the image before
	list    []move
	options LabelOptions
	masks   MaskMover // its memory of the fields of elastic moves
	field   int       // 1 + the number of the move whose field masks has; 0 for none
	lost    Transform // moves pixels in a way that is not known; nil for none
}

// A move is the displacement of pixels by one operation.
type move struct {
	kind moveKind
	w, h int        // of the image after
	at   [4]int     // of a crop the rectangle, of a border left, top, right and bottom
	mode PadMode    // of a border
	a    [8]float64 // see below
}

type moveKind uint8

const (
	moveResize moveKind = iota
	moveCrop
	moveFlipH
	moveFlipV
	movePad
	moveAffine      // a maps places after to places before, both from the centers: a0 x + a1 y + a2, a3 x + a4 y + a5
	movePerspective // a are the coefficients of perspectiveOf
	moveElastic     // a are the arguments of elastic but for the filter and the fill
	moveIoUCrop     // a crop that also empties boxes whose center is outside of it
	moveClamp       // cuts boxes off at the edges
	moveSanitize    // removes boxes: a0 is the least side, a1 the least area

	moveClampPoints    // brings keypoints to the edges
	moveSanitizePoints // removes keypoints outside
)

// reset prepares m for the next image, and keeps its memory.
func (m *Moves) reset(w, h int) {
	m.w, m.h, m.list, m.options, m.lost, m.field = w, h, m.list[:0], LabelOptions{}, nil, 0
}

// add records an operation on the image, which is w by h pixels afterwards.
func (m *Moves) add(kind moveKind, w, h int, at [4]int, a ...float64) {
	m.list = append(m.list, move{kind: kind, w: w, h: h, at: at})
	copy(m.list[len(m.list)-1].a[:], a)
}

// Still returns the Moves of an image of w x h pixels that no operation moves.
func Still(w, h int) *Moves { return &Moves{w: w, h: h} }

// Err returns an error if an operation moved pixels in an unknown way, which labels cannot follow.
// An unknown move is no error for an image without labels.
func (m *Moves) Err() error {
	if m.lost == nil {
		return nil
	}
	return fmt.Errorf("transform %s: masks, boxes and keypoints cannot follow what it does to pixels; leave it "+
		"out, or these", opName(m.lost))
}

// IsStill reports whether no pixel moves. Boxes and points may still be cut off or removed.
func (m *Moves) IsStill() bool {
	return !slices.ContainsFunc(m.list, func(d move) bool {
		return d.kind != moveClamp && d.kind != moveSanitize && d.kind != moveClampPoints && d.kind != moveSanitizePoints
	})
}

// Before returns width and height of the image before all moves.
func (m *Moves) Before() (w, h int) { return m.w, m.h }

// Size returns width and height of the image after all moves.
func (m *Moves) Size() (w, h int) {
	if n := len(m.list); n > 0 {
		return m.list[n-1].w, m.list[n-1].h
	}
	return m.w, m.h
}

// Boxes moves boxes in place; each is left, top, right, bottom. A rotated box becomes the smallest
// upright box around it. After every operation except resizes and flips, boxes are cut off at the
// edges of the image. keep, unless nil, has one element per box, and is set to false for boxes that
// a SanitizeBoundingBoxes removes.
func (m *Moves) Boxes(boxes []float32, keep []bool) {
	for i := range keep {
		keep[i] = true
	}
	for i := 0; i+4 <= len(boxes); i += 4 {
		b := box{float64(boxes[i]), float64(boxes[i+1]), float64(boxes[i+2]), float64(boxes[i+3])}
		kept := m.box(&b)
		for k, v := range b {
			boxes[i+k] = float32(v)
		}
		if keep != nil && !kept {
			keep[i/4] = false
		}
	}
}

// box moves one box, and reports whether it is kept.
func (m *Moves) box(b *box) bool {
	w, h := float64(m.w), float64(m.h)
	kept := true
	for i := range m.list {
		d := &m.list[i]
		ow, oh := float64(d.w), float64(d.h)
		switch d.kind {
		case moveResize:
			b[0], b[1], b[2], b[3] = b[0]*ow/w, b[1]*oh/h, b[2]*ow/w, b[3]*oh/h
		case moveFlipH:
			b[0], b[2] = w-b[2], w-b[0]
		case moveFlipV:
			b[1], b[3] = h-b[3], h-b[1]
		case moveIoUCrop:
			if !b.centerIn(d.rect()) {
				*b = box{float64(d.at[0]), float64(d.at[1]), float64(d.at[0]), float64(d.at[1])}
			}
			b.shift(-d.at[0], -d.at[1]).clamp(ow, oh)
		case moveCrop:
			b.shift(-d.at[0], -d.at[1]).clamp(ow, oh)
		case movePad:
			b.shift(d.at[0], d.at[1]).clamp(ow, oh)
		case moveSanitize:
			kept = kept && b.sane(w, h, d.a[0], d.a[1])
		case moveClamp:
			b.clamp(ow, oh)
		case moveClampPoints, moveSanitizePoints:
		default:
			b.hull(func(x, y float64) (float64, float64) { return m.place(i, w, h, x, y) })
			b.clamp(ow, oh)
		}
		w, h = ow, oh
	}
	return kept
}

// Points moves points of n numbers each, in place: x, y and, with n = 3, the visibility. A point of
// visibility 0 is not labeled, and stays as it is. Points outside of the image are not cut off.
// keep, unless nil, has one element per point, and is set to false for points that a
// SanitizeKeyPoints removes.
func (m *Moves) Points(points []float32, n int, keep []bool) {
	edge := 0.0
	if m.options.Keypoints == "pixels" {
		edge = 1
	}
	for i := range keep {
		keep[i] = true
	}
	for i := 0; i+n <= len(points); i += n {
		if n > 2 && points[i+2] == 0 {
			continue
		}
		x, y := float64(points[i]), float64(points[i+1])
		w, h := float64(m.w), float64(m.h)
		for k := range m.list {
			d := &m.list[k]
			ow, oh := float64(d.w), float64(d.h)
			switch d.kind {
			case moveResize:
				x, y = x*ow/w, y*oh/h
			case moveFlipH:
				x = w - edge - x
			case moveFlipV:
				y = h - edge - y
			case moveCrop, moveIoUCrop:
				x, y = x-float64(d.at[0]), y-float64(d.at[1])
			case movePad:
				x, y = x+float64(d.at[0]), y+float64(d.at[1])
			case moveClampPoints:
				x, y = min(max(x, 0), w-edge), min(max(y, 0), h-edge)
			case moveSanitizePoints:
				if keep != nil && !(x >= 0 && x < w && y >= 0 && y < h) {
					keep[i/n] = false
				}
			case moveClamp, moveSanitize:
			default:
				x, y = m.place(k, w, h, x, y)
			}
			w, h = ow, oh
		}
		points[i], points[i+1] = float32(x), float32(y)
	}
}

// place returns where a warp, which is move i, brings a place of an image of w by h pixels.
// Matrices map results to sources, so that place uses their inverse.
func (m *Moves) place(i int, w, h, x, y float64) (float64, float64) {
	d := &m.list[i]
	switch d.kind {
	case moveAffine:
		a := &d.a
		x, y = x-w/2-a[2], y-h/2-a[5]
		det := a[0]*a[4] - a[1]*a[3]
		return (a[4]*x-a[1]*y)/det + float64(d.w)/2, (a[0]*y-a[3]*x)/det + float64(d.h)/2
	case movePerspective:
		return unproject(&d.a, x, y)
	case moveElastic:
		return m.elasticPlace(i, x, y)
	}
	return x, y
}

// unproject maps a place before a perspective to the place after it: the inverse of perspectiveOf's
// coefficients, by the adjugate of their matrix.
func unproject(k *[8]float64, x, y float64) (float64, float64) {
	a, b, c, d, e, f, g, h := k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7]
	z := (d*h-e*g)*x + (b*g-a*h)*y + (a*e - b*d)
	return ((e-f*h)*x + (c*h-b)*y + (b*f - c*e)) / z, ((f*g-d)*x + (a-c*g)*y + (c*d - a*f)) / z
}

// elasticPlace returns approximately where elastic move i brings a place. The field says where each
// pixel of the result comes from; its inverse has no formula. Like torchvision, elasticPlace goes
// back by the distance that the pixel at the place itself has.
func (m *Moves) elasticPlace(i int, x, y float64) (float64, float64) {
	d := &m.list[i]
	n := d.w * d.h
	if m.field != i+1 {
		m.masks.displacement(d)
		m.field = i + 1
	}
	px, py := min(max(int(math.Floor(x)), 0), d.w-1), min(max(int(math.Floor(y)), 0), d.h-1)
	at := py*d.w + px
	return x - float64(m.masks.field[at])*float64(d.w)/2, y - float64(m.masks.field[n+at])*float64(d.h)/2
}

func (d *move) rect() image.Rectangle { return image.Rect(d.at[0], d.at[1], d.at[2], d.at[3]) }

// box is left, top, right, bottom, in float64: float32 would add a rounding error with every move.
type box [4]float64

func (b *box) shift(x, y int) *box {
	b[0], b[1], b[2], b[3] = b[0]+float64(x), b[1]+float64(y), b[2]+float64(x), b[3]+float64(y)
	return b
}

// clamp cuts b off at the edges of an image of w x h pixels.
func (b *box) clamp(w, h float64) {
	b[0], b[1], b[2], b[3] = min(max(b[0], 0), w), min(max(b[1], 0), h), min(max(b[2], 0), w), min(max(b[3], 0), h)
}

// hull replaces b by the smallest upright box around its four corners after the mapping to.
func (b *box) hull(to func(x, y float64) (float64, float64)) {
	x, y := to(b[0], b[1])
	out := box{x, y, x, y}
	for _, corner := range [3][2]float64{{b[2], b[1]}, {b[2], b[3]}, {b[0], b[3]}} {
		x, y := to(corner[0], corner[1])
		out = box{min(out[0], x), min(out[1], y), max(out[2], x), max(out[3], y)}
	}
	if slices.ContainsFunc(out[:], math.IsNaN) { // a corner beyond the horizon of a perspective
		out = box{}
	}
	*b = out
}

// centerIn reports whether the center of b is within r, and not on its edge.
func (b *box) centerIn(r image.Rectangle) bool {
	x, y := 0.5*(b[0]+b[2]), 0.5*(b[1]+b[3])
	return float64(r.Min.X) < x && x < float64(r.Max.X) && float64(r.Min.Y) < y && y < float64(r.Max.Y)
}

// sane reports whether b has at least the given sides and area, and lies within the image.
// Comparisons with NaN are false, so that a box with a NaN is not sane.
func (b *box) sane(w, h, side, area float64) bool {
	bw, bh := b[2]-b[0], b[3]-b[1]
	return bw >= side && bh >= side && bw*bh >= area && b[0] >= 0 && b[1] >= 0 && b[2] <= w && b[3] <= h
}

// CheckBoxes returns an error for the first invalid box: a number is not finite, right is less than
// left, or bottom is less than top.
func CheckBoxes(boxes []float32) error {
	for i := 0; i+4 <= len(boxes); i += 4 {
		b := boxes[i : i+4]
		switch {
		case slices.ContainsFunc(b, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }):
			return fmt.Errorf("box %d is %v: its numbers must be finite", i/4, b)
		case b[2] < b[0] || b[3] < b[1]:
			return fmt.Errorf("box %d is %v: right must not be less than left, and bottom not less than top", i/4, b)
		}
	}
	return nil
}
