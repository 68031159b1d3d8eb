package transforms

import (
	"errors"
	"fmt"
	"image"
	"math"

	"github.com/penstock/penstock/tensor"
)

func init() { Register[RandomErasing]() }

// RandomErasing overwrites a random rectangle of the finished record: it belongs behind
// ConvertDType and Normalize, and its value is in units of what those make.
type RandomErasing struct {
	P     float64   `json:"p"`     // probability; 0 means 0.5
	Scale []float64 `json:"scale"` // range of the rectangle's share of the area; nil means 0.02 to 0.33
	Ratio []float64 `json:"ratio"` // range of height / width; nil means 0.3 to 3.3
	Value []float64 `json:"value"` // one for each channel, or one for all; nil means 0
}

// Op returns "RandomErasing".
func (RandomErasing) Op() string { return "RandomErasing" }

// Resolve fills in all.
func (t RandomErasing) Resolve() (Transform, error) {
	if t.Scale == nil {
		t.Scale = []float64{0.02, 0.33}
	}
	if t.Ratio == nil {
		t.Ratio = []float64{0.3, 3.3}
	}
	if t.Value == nil {
		t.Value = []float64{0}
	}
	errs := []error{resolveP(&t.P, 0.5), checkRange("scale", t.Scale, 0, 1), checkRange("ratio", t.Ratio, 0, math.MaxFloat64)}
	if len(t.Value) != 1 && len(t.Value) != 3 {
		errs = append(errs, fmt.Errorf("value %v must be 1 or 3 numbers", t.Value))
	}
	return t, errors.Join(errs...)
}

// Build draws the rectangle.
func (t RandomErasing) Build(p *Plan) error {
	if p.Rand().Float64() >= t.P {
		return nil
	}
	in := p.Info()
	r := drawPart(p.Rand(), in.H, in.W, t.Scale, t.Ratio, false) // x and y exchanged
	if r.Empty() {
		return nil
	}
	var value [3]float64
	for c := range value {
		value[c] = t.Value[c%len(t.Value)]
	}
	return p.Erase(image.Rect(r.Min.Y, r.Min.X, r.Max.Y, r.Max.X), value)
}

// Randomized marks the transform as random.
func (RandomErasing) Randomized() {}

// erasure is a rectangle of the record that gets a value for each channel.
type erasure struct {
	r     image.Rectangle
	value [3]float64
}

var errErased = errors.New("input has been erased in part already; RandomErasing comes last")

// Erase overwrites r in the finished record. Only Flip may follow.
func (p *Plan) Erase(r image.Rectangle, value [3]float64) error {
	if !r.In(image.Rect(0, 0, p.info.W, p.info.H)) {
		return fmt.Errorf("rectangle %v leaves the input of %dx%d pixels", r, p.info.W, p.info.H)
	}
	p.erased = append(p.erased, erasure{r, value})
	return nil
}

// erase applies what the plan has recorded to the record.
func (r *Runner) erase(t target) {
	for _, e := range r.plan.erased {
		for c := range r.plan.info.C {
			switch v := e.value[c]; t.dtype {
			case tensor.Uint8:
				eraseChannel(t.dst, r.plan.info, e.r, c, byte(min(max(v, 0), 255)))
			case tensor.Float32:
				eraseChannel(t.f32, r.plan.info, e.r, c, float32(v))
			case tensor.Float16:
				eraseChannel(t.u16, r.plan.info, e.r, c, uint16(tensor.HalfOf(float32(v))))
			default:
				eraseChannel(t.u16, r.plan.info, e.r, c, uint16(tensor.BrainOf(float32(v))))
			}
		}
	}
}

func eraseChannel[T any](d []T, info Info, r image.Rectangle, c int, v T) {
	first, pixel, row := c, info.C, info.W*info.C
	if info.Layout == CHW {
		first, pixel, row = c*info.W*info.H, 1, info.W
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			d[first+y*row+x*pixel] = v
		}
	}
}
