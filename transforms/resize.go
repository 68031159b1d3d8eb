package transforms

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/suggest"
)

func init() { Register[Resize]() }

// Resize makes an image another size with Pillow's filters, bit for bit.
//
// Pillow 13 resizes vertically first where the height loses more than twice as many pixels as the
// width, and so does Resize. Pillow up to version 12 always resizes horizontally first, which
// rounds such tall images differently, by a few levels at hard edges: PassOrder "horizontal".
//
// One size with Fit "shorter" is torchvision's Resize: the shorter side becomes Size[0] and
// the longer one floor(Size[0]*long/short). Two sizes are height and width, in that order.
type Resize struct {
	// pixels: one, or height and width
	Size []int `json:"size" is:"size"`
	// see below; "" means shorter for one size, exact for two
	Fit string `json:"fit"`
	// with shorter: limit of the longer side; 0 means none
	MaxSize int `json:"max_size"`
	// nearest, box, bilinear, hamming, bicubic, lanczos
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// "auto" (Pillow 13 and newer) or "horizontal" (Pillow up to 12), see above; "" means auto
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
	// with pad: gray, or red, green, blue
	Fill []int `json:"fill" default:"[0]" is:"fill"`
	// is always true
	Antialias Antialias `json:"antialias"`
}

// Values of Fit, besides "shorter" and "exact" (both sides as given, aspect lost):
//
//	longer   the longer side becomes Size[0]
//	cover    the smallest size that covers Size, then a crop of its center
//	pad      the largest size that fits into Size, then a border of Fill around it
//
// The last two take one size for a square.
var fits = []string{"shorter", "longer", "exact", "cover", "pad"}

// Antialias documents in a recipe that filters widen when they reduce an image, as Pillow's do.
// torchvision has a parameter of this name; here no other value exists, and false is refused
// instead of ignored.
type Antialias struct{}

// MarshalJSON writes true.
func (Antialias) MarshalJSON() ([]byte, error) { return []byte("true"), nil }

// UnmarshalJSON accepts only true.
func (*Antialias) UnmarshalJSON(b []byte) error {
	var on bool
	if err := json.Unmarshal(b, &on); err != nil {
		return err
	}
	if !on {
		return errors.New("antialias cannot be false; filters always widen when they reduce, as Pillow's do")
	}
	return nil
}

// Resolve fills in Fit.
func (t Resize) Resolve() (Transform, error) {
	if t.Fit == "" {
		t.Fit = "shorter"
		if len(t.Size) == 2 {
			t.Fit = "exact"
		}
	}
	switch one := t.Fit == "shorter" || t.Fit == "longer"; {
	case !slices.Contains(fits, t.Fit):
		return nil, fmt.Errorf("fit %q %s", t.Fit, suggest.OneOf(t.Fit, fits))
	case one && len(t.Size) == 2:
		return nil, fmt.Errorf("fit %s takes one size, not %d", t.Fit, len(t.Size))
	case t.MaxSize != 0 && (t.Fit != "shorter" || len(t.Size) == 1 && t.MaxSize <= t.Size[0]):
		return nil, fmt.Errorf("max_size %d must be larger than size and goes with fit shorter alone", t.MaxSize)
	}
	return t, nil
}

// resizeBy resizes in the named pass order: "auto" is vertical first if the height loses more than
// twice as many pixels as the width.
func resizeBy(p *Plan, order string, w, h int, f kernel.Filter) error {
	less := p.info.H - h
	return p.resize(w, h, f, passOrder(order == "auto" && less > 0 && less > 2*(p.info.W-w)))
}

// Build adds the resize, and the crop of cover or the border of pad after it.
func (t Resize) Build(p *Plan) error {
	in := p.Info()
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	boxH, boxW := t.Size[0], t.Size[len(t.Size)-1]
	w, h := t.scaled(in.W, in.H, boxW, boxH)
	if err := resizeBy(p, t.PassOrder, w, h, f); err != nil {
		return err
	}
	switch t.Fit {
	case "cover":
		return p.Crop(centered(w, h, boxW, boxH))
	case "pad":
		l, u := (boxW-w)/2, (boxH-h)/2
		return p.Pad(l, u, boxW-w-l, boxH-h-u, PadConstant, fillBytes(t.Fill))
	}
	return nil
}

// scaled returns the size of a w x h image before the crop of cover or the border of pad.
func (t Resize) scaled(w, h, boxW, boxH int) (int, int) {
	wide := w*boxH >= h*boxW // wider than the box, or as wide
	switch t.Fit {
	case "shorter":
		return shorter(w, h, t.Size[0], t.MaxSize)
	case "longer":
		if w >= h {
			return t.Size[0], t.Size[0] * h / w
		}
		return t.Size[0] * w / h, t.Size[0]
	case "cover":
		if wide {
			return w * boxH / h, boxH
		}
		return boxW, h * boxW / w
	case "pad":
		if wide {
			return boxW, max(h*boxW/w, 1)
		}
		return max(w*boxH/h, 1), boxH
	}
	return boxW, boxH
}

// shorter is torchvision's _compute_resized_image_output_size.
func shorter(w, h, size, maxSize int) (int, int) {
	short, long := min(w, h), max(w, h)
	newShort, newLong := size, size*long/short
	if maxSize > 0 && newLong > maxSize {
		newShort, newLong = maxSize*newShort/newLong, maxSize
	}
	if w <= h {
		return newShort, newLong
	}
	return newLong, newShort
}

// centered returns the center, w x h pixels, of a larger image. The corner is rounded as
// torchvision does: int(round((d-crop)/2)) with halves to even.
func centered(fromW, fromH, w, h int) image.Rectangle {
	x, y := halfEven(fromW-w), halfEven(fromH-h)
	return image.Rect(x, y, x+w, y+h)
}

// halfEven returns n/2, with a half rounded to the even neighbor, for n >= 0.
func halfEven(n int) int {
	return n/2 + n&1*(n/2&1)
}

// checkSize returns an error unless size is one or two positive numbers.
func checkSize(size []int) error {
	if len(size) != 1 && len(size) != 2 {
		return fmt.Errorf("size %v must be one number, or height and width", size)
	}
	for _, v := range size {
		if v <= 0 || v > 1<<20 {
			return fmt.Errorf("size %v: each must be 1 to %d pixels", size, 1<<20)
		}
	}
	return nil
}

// checkFill returns an error unless fill is a gray value or a color.
func checkFill(fill []int) error {
	if len(fill) != 1 && len(fill) != 3 {
		return fmt.Errorf("fill %v must be one gray value, or red, green, blue", fill)
	}
	for _, v := range fill {
		if v < 0 || v > 255 {
			return fmt.Errorf("fill %v: each must be 0 to 255", fill)
		}
	}
	return nil
}

// fillBytes returns the byte of each channel for a fill of 1 or 3 values.
func fillBytes(fill []int) (b [3]byte) {
	for c := range b {
		b[c] = byte(fill[c%len(fill)])
	}
	return b
}

// weightCache keeps the filter weights of the axes that were resized most recently. A folder of
// photographs has few distinct sides, so that nearly all weights are found. The cache belongs to
// one Runner and has no lock.
type weightCache struct {
	entries [64]weightEntry
	clock   uint64
}

type weightEntry struct {
	weights kernel.Weights
	used    uint64 // clock of the last use; 0 is an empty entry
}

// get returns the weights for outputs [from, to). They stay valid for the next 63 calls: the entry
// that was used least recently is replaced.
func (c *weightCache) get(in, out, from, to int, f kernel.Filter) *kernel.Weights {
	c.clock++
	oldest := &c.entries[0]
	for i := range c.entries {
		e := &c.entries[i]
		w := &e.weights
		if w.In == in && w.Out == out && w.From == from && w.To == to && w.Filter == f {
			e.used = c.clock
			return w
		}
		if e.used < oldest.used {
			oldest = e
		}
	}
	oldest.weights.Init(in, out, from, to, f)
	oldest.used = c.clock
	return &oldest.weights
}
