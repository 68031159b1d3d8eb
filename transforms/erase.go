package transforms

import (
	"errors"
	"fmt"
	"image"

	"github.com/penstock/penstock/tensor"
)

func init() { Register[RandomErasing]() }

// RandomErasing overwrites a random rectangle of the finished record. It belongs after ConvertDType
// and Normalize, because its value is in the units of their output.
type RandomErasing struct {
	// probability
	P *float64 `json:"p" default:"0.5" in:"[0,1]"`
	// range of the rectangle's share of the area
	Scale []float64 `json:"scale" default:"[0.02,0.33]" is:"range 1"`
	// range of height / width
	Ratio []float64 `json:"ratio" default:"[0.3,3.3]" is:"range 1e308"`
	// one for each channel, or one for all
	Value []float64 `json:"value" default:"[0]"`
	// const, rand or pixel, see below
	Mode string `json:"mode" default:"const" choices:"const rand pixel"`
}

// Values of Mode, by timm's names. Random values have mean 0 and deviation 1, as normalized
// pixels have:
//
//	const   Value
//	rand    a random value for each channel
//	pixel   a random value for each pixel and channel: torchvision's value="random"
const (
	eraseConst = "const"
	eraseRand  = "rand"
	erasePixel = "pixel"
)

// Resolve checks Value.
func (t RandomErasing) Resolve() (Transform, error) {
	if len(t.Value) != 1 && len(t.Value) != 3 {
		return nil, fmt.Errorf("value %v must be 1 or 3 numbers", t.Value)
	}
	return t, nil
}

// Build draws the rectangle and the values. torchvision draws the height where drawPart draws the
// width, so that both axes are exchanged in the call and again in the result. Noise gets a seed
// here and its numbers later: Build runs before there is a record to write to.
func (t RandomErasing) Build(p *Plan) error {
	if p.Rand().Float64() >= *t.P {
		return nil
	}
	in := p.Info()
	r := drawPart(p.Rand(), in.H, in.W, t.Scale, t.Ratio, smallerPart) // x and y exchanged
	if r.Empty() {
		return nil
	}
	var value [3]float64
	for c := range value {
		value[c] = t.Value[c%len(t.Value)]
		if t.Mode == eraseRand {
			value[c] = p.Rand().Normal()
		}
	}
	if err := p.Erase(image.Rect(r.Min.Y, r.Min.X, r.Max.Y, r.Max.X), value); err != nil || t.Mode != erasePixel {
		return err
	}
	e := &p.erased[len(p.erased)-1]
	e.noise, e.rnd = true, NewRand(p.Rand().Uint64(), 0, 0)
	return nil
}

func (RandomErasing) Randomized() {}

// erasure is a rectangle of the record that is overwritten by one value per channel, or by noise.
type erasure struct {
	r     image.Rectangle
	value [3]float64
	noise bool
	rnd   Rand // stream of the noise
}

var errErased = errors.New("input has been erased in part already; RandomErasing comes last")

// Erase overwrites r in the finished record. Only flips may follow, which move r along with the
// pixels.
func (p *Plan) Erase(r image.Rectangle, value [3]float64) error {
	if !r.In(image.Rect(0, 0, p.info.W, p.info.H)) {
		return fmt.Errorf("rectangle %v leaves the input of %dx%d pixels", r, p.info.W, p.info.H)
	}
	p.erased = append(p.erased, erasure{r: r, value: value})
	return nil
}

// erase overwrites the plan's rectangles in the finished record t, which has the record's final
// type.
func (r *Runner) erase(t target) {
	for _, e := range r.plan.erased {
		for c := range r.plan.info.C {
			switch t.dtype {
			case tensor.Uint8:
				eraseChannel(t.dst, r.plan.info, &e, c, func(v float64) byte { return byte(min(max(v, 0), 255)) })
			case tensor.Float32:
				eraseChannel(t.f32, r.plan.info, &e, c, func(v float64) float32 { return float32(v) })
			case tensor.Float16:
				eraseChannel(t.u16, r.plan.info, &e, c, func(v float64) uint16 { return uint16(tensor.HalfOf(float32(v))) })
			default:
				eraseChannel(t.u16, r.plan.info, &e, c, func(v float64) uint16 { return uint16(tensor.BrainOf(float32(v))) })
			}
		}
	}
}

// eraseChannel overwrites channel c in a rectangle; of converts a value to the record's type.
func eraseChannel[T any](d []T, info Info, e *erasure, c int, of func(float64) T) {
	first, pixel, row := c, info.C, info.W*info.C
	if info.Layout == CHW {
		first, pixel, row = c*info.W*info.H, 1, info.W
	}
	v := of(e.value[c])
	for y := e.r.Min.Y; y < e.r.Max.Y; y++ {
		for x := e.r.Min.X; x < e.r.Max.X; x++ {
			if e.noise {
				v = of(e.rnd.Normal())
			}
			d[first+y*row+x*pixel] = v
		}
	}
}
