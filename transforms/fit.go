package transforms

import (
	"errors"
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/suggest"
)

func init() {
	Register[Fit]()
	Register[Fill]()
}

// Fit reduces an image that is larger than a box to fit into it, and leaves a smaller one
// alone: imaging's Fit, by Pillow's filters.
type Fit struct {
	Size          []int  `json:"size"`          // of the box: one for a square, or height and width
	Interpolation string `json:"interpolation"` // as in Resize; "" means bilinear
}

// Op returns "Fit".
func (Fit) Op() string { return "Fit" }

// Resolve spells out Size and Interpolation.
func (t Fit) Resolve() (Transform, error) {
	var err error
	t.Size, t.Interpolation, err = resolveBox(t.Size, t.Interpolation)
	return t, err
}

// resolveBox returns height and width, and a filter's name.
func resolveBox(size []int, filter string) ([]int, string, error) {
	if filter == "" {
		filter = kernel.Bilinear.String()
	}
	_, err := kernel.ParseFilter(filter)
	if err := errors.Join(checkSize(size), err); err != nil {
		return size, filter, err
	}
	return []int{size[0], size[len(size)-1]}, filter, nil
}

// Build adds the resize.
func (t Fit) Build(p *Plan) error {
	in := p.Info()
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	boxH, boxW := t.Size[0], t.Size[1]
	if in.W <= boxW && in.H <= boxH {
		return p.bytes()
	}
	w, h := boxW, boxH
	if aspect := float64(in.W) / float64(in.H); aspect > float64(boxW)/float64(boxH) {
		h = max(int(float64(w)/aspect), 1)
	} else {
		w = max(int(float64(h)*aspect), 1)
	}
	return p.Resize(w, h, f)
}

// Fill makes an image exactly a size without distortion: it cuts off what is too long, at
// the end away from Anchor, and resizes the rest: imaging's Fill, by Pillow's filters.
type Fill struct {
	Size          []int  `json:"size"`          // one for a square, or height and width
	Anchor        string `json:"anchor"`        // center, or top, bottom, left, right, top-left, ...; "" means center
	Interpolation string `json:"interpolation"` // as in Resize; "" means bilinear
}

var anchors = []string{"center", "top", "bottom", "left", "right", "top-left", "top-right", "bottom-left", "bottom-right"}

// Op returns "Fill".
func (Fill) Op() string { return "Fill" }

// Resolve spells out all.
func (t Fill) Resolve() (Transform, error) {
	var err error
	t.Size, t.Interpolation, err = resolveBox(t.Size, t.Interpolation)
	if t.Anchor == "" {
		t.Anchor = "center"
	}
	if !slices.Contains(anchors, t.Anchor) {
		err = errors.Join(err, fmt.Errorf("unknown anchor %q%s", t.Anchor, suggest.Hint(t.Anchor, anchors)))
	}
	return t, err
}

// Build adds the crop and the resize.
func (t Fill) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	in, h, w := p.Info(), t.Size[0], t.Size[1]
	if err := p.Crop(t.part(in.W, in.H)); err != nil {
		return err
	}
	return p.Resize(w, h, f)
}

// part returns what of a w x h image is kept.
func (t Fill) part(w, h int) image.Rectangle {
	boxH, boxW := float64(t.Size[0]), float64(t.Size[1])
	pw, ph := w, h
	if float64(w)/float64(h) < boxW/boxH {
		ph = min(int(math.Max(1, float64(w)*boxH/boxW)+0.5), h)
	} else {
		pw = min(int(math.Max(1, float64(h)*boxW/boxH)+0.5), w)
	}
	x, y := (w-pw)/2, (h-ph)/2
	switch {
	case strings.HasPrefix(t.Anchor, "top"):
		y = 0
	case strings.HasPrefix(t.Anchor, "bottom"):
		y = h - ph
	}
	switch {
	case strings.HasSuffix(t.Anchor, "left"):
		x = 0
	case strings.HasSuffix(t.Anchor, "right"):
		x = w - pw
	}
	return image.Rect(x, y, x+pw, y+ph)
}
