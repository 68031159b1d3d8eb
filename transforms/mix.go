package transforms

import (
	"fmt"
	"image"
	"math"
)

// Batch is a batch of float32 records and their labels, for the transforms that mix records
// with each other.
type Batch struct {
	X      []float32 // records back to back
	Info   Info      // of one record
	Labels []int64   // class of each record
	Y      []float32 // result: for each record the share of each class, adding up to 1
}

// check returns the number of elements of a record, and refuses a Batch whose slices do not fit
// together.
func (b *Batch) check(classes int) (int, error) {
	n, size := len(b.Labels), b.Info.W*b.Info.H*b.Info.C
	switch {
	case size <= 0 || len(b.X) != n*size:
		return 0, fmt.Errorf("%d elements are not %d records of %v", len(b.X), n, b.Info.Shape())
	case len(b.Y) != n*classes:
		return 0, fmt.Errorf("%d shares are not %d for each of %d records", len(b.Y), classes, n)
	}
	for i, l := range b.Labels {
		if l < 0 || l >= int64(classes) {
			return 0, fmt.Errorf("label %d of record %d is not one of %d classes", l, i, classes)
		}
	}
	return size, nil
}

// mixLabels gives each record the share keep of its own class, and the rest to the class of the
// record before it. Shares are added, since both records may have the same class.
func (b *Batch) mixLabels(classes int, keep float64) {
	clear(b.Y)
	last := len(b.Labels) - 1
	for i, l := range b.Labels {
		y := b.Y[i*classes:][:classes]
		y[l] += float32(keep)
		if i == 0 {
			y[b.Labels[last]] += float32(1 - keep)
		} else {
			y[b.Labels[i-1]] += float32(1 - keep)
		}
	}
}

// MixUp blends each record of a batch with the record before it, and the first record with the
// last, all with the same share (Zhang et al. 2017, as in torchvision). A MixUp serves one
// goroutine.
type MixUp struct {
	Alpha   float64 // parameter of the beta distribution of the share, positive; 1 in torchvision
	Classes int     // number of classes

	last []float32 // the last record as it was
}

// Apply mixes b in place, from the last record to the first: each record's predecessor is then
// still unchanged. Only a copy of the last record is needed, for the first.
func (t *MixUp) Apply(b *Batch, rnd *Rand) error {
	size, err := b.check(t.Classes)
	if err != nil || len(b.Labels) == 0 {
		return wrapMix("MixUp", err)
	}
	keep, err := drawShare(t.Alpha, rnd)
	if err != nil {
		return wrapMix("MixUp", err)
	}
	t.last = append(t.last[:0], b.X[len(b.X)-size:]...)
	for i := len(b.Labels) - 1; i > 0; i-- {
		blendRecords(b.X[i*size:(i+1)*size], b.X[(i-1)*size:i*size], keep)
	}
	blendRecords(b.X[:size], t.last, keep)
	b.mixLabels(t.Classes, keep)
	return nil
}

// blendRecords blends x with other in place. Each product is rounded to float32 on its own, as
// torch does.
func blendRecords(x, other []float32, keep float64) {
	share, rest := float32(keep), float32(1-keep)
	for i, v := range other {
		x[i] = float32(x[i]*share) + float32(v*rest)
	}
}

// CutMix replaces a rectangle of each record of a batch by the same rectangle of the record before
// it; the first record takes it from the last (Yun et al. 2019, as in torchvision). A CutMix serves
// one goroutine.
type CutMix struct {
	Alpha   float64 // parameter of the beta distribution of the share that stays, positive; 1 in torchvision
	Classes int     // number of classes

	last []float32 // the last record as it was
}

// Apply mixes b in place, from the last record to the first, as MixUp does. The shares of the
// labels follow the rectangle's true area, which is smaller than drawn if the rectangle is cut off
// at an edge.
func (t *CutMix) Apply(b *Batch, rnd *Rand) error {
	size, err := b.check(t.Classes)
	if err != nil || len(b.Labels) == 0 {
		return wrapMix("CutMix", err)
	}
	keep, err := drawShare(t.Alpha, rnd)
	if err != nil {
		return wrapMix("CutMix", err)
	}
	r := drawHole(b.Info.W, b.Info.H, keep, rnd)
	t.last = append(t.last[:0], b.X[len(b.X)-size:]...)
	for i := len(b.Labels) - 1; i > 0; i-- {
		copyRect(b.X[i*size:(i+1)*size], b.X[(i-1)*size:i*size], b.Info, r)
	}
	copyRect(b.X[:size], t.last, b.Info, r)
	b.mixLabels(t.Classes, 1-float64(r.Dx()*r.Dy())/float64(b.Info.W*b.Info.H))
	return nil
}

// drawHole returns a rectangle around a random center. Its area is the share 1-keep of the image,
// unless an edge cuts it off.
func drawHole(w, h int, keep float64, rnd *Rand) image.Rectangle {
	x, y := rnd.IntN(w), rnd.IntN(h)
	half := 0.5 * math.Sqrt(1-keep)
	dx, dy := int(half*float64(w)), int(half*float64(h))
	return image.Rect(max(x-dx, 0), max(y-dy, 0), min(x+dx, w), min(y+dy, h))
}

// copyRect copies r from one record to another.
func copyRect(dst, src []float32, info Info, r image.Rectangle) {
	if info.Layout == CHW {
		for c := range info.C {
			plane := c * info.W * info.H
			for y := r.Min.Y; y < r.Max.Y; y++ {
				from, to := plane+y*info.W+r.Min.X, plane+y*info.W+r.Max.X
				copy(dst[from:to], src[from:to])
			}
		}
		return
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		from, to := (y*info.W+r.Min.X)*info.C, (y*info.W+r.Max.X)*info.C
		copy(dst[from:to], src[from:to])
	}
}

// drawShare draws the share that every record keeps of itself.
func drawShare(alpha float64, rnd *Rand) (float64, error) {
	if !(alpha > 0) || math.IsInf(alpha, 0) {
		return 0, fmt.Errorf("alpha %v must be positive; to mix nothing, leave the transform out", alpha)
	}
	return rnd.Beta(alpha), nil
}

func wrapMix(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("transform %s: %w", op, err)
}
