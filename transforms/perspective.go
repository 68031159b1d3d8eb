package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

func init() { Register[RandomPerspective]() }

// RandomPerspective moves the corners of an image inwards by random distances, as if it was
// seen from aside; the size stays. torchvision solves for the map by least squares, whose
// rounding moves a pixel here and there, and all of them where the corners nearly coincide.
type RandomPerspective struct {
	Distortion    float64 `json:"distortion_scale"` // most that a corner moves, as a share of half the image, to 1; 0 means 0.5
	P             float64 `json:"p"`                // probability; 0 means 0.5
	Interpolation string  `json:"interpolation"`    // nearest, bilinear or bicubic; "" means bilinear
	Fill          []int   `json:"fill"`             // as in Pad; nil means 0
}

// Op returns "RandomPerspective".
func (RandomPerspective) Op() string { return "RandomPerspective" }

// Resolve fills in all.
func (t RandomPerspective) Resolve() (Transform, error) {
	if t.Distortion == 0 {
		t.Distortion = 0.5
	}
	if t.Interpolation == "" {
		t.Interpolation = kernel.Bilinear.String()
	}
	errs := [4]error{0: resolveP(&t.P, 0.5)}
	if !(t.Distortion > 0 && t.Distortion <= 1) {
		errs[1] = fmt.Errorf("distortion_scale %v must be above 0, at most 1", t.Distortion)
	}
	_, errs[2] = parseWarpFilter(t.Interpolation)
	t.Fill, errs[3] = resolveFill(t.Fill)
	return t, errors.Join(errs[:]...)
}

// Build draws where the corners go.
func (t RandomPerspective) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	r, in := p.Rand(), p.Info()
	if r.Float64() >= t.P {
		return p.bytes()
	}
	right, below := float64(in.W-1), float64(in.H-1)
	across, down := int(t.Distortion*float64(in.W/2)), int(t.Distortion*float64(in.H/2))
	x := func() float64 { return float64(r.IntN(across + 1)) }
	y := func() float64 { return float64(r.IntN(down + 1)) }
	corners := [4][2]float64{{x(), y()}, {right - x(), y()}, {right - x(), below - y()}, {x(), below - y()}}
	return p.perspective(corners, f, fillBytes(t.Fill))
}

// Randomized marks the transform as random.
func (RandomPerspective) Randomized() {}

// perspective brings the image's corners, clockwise from the upper left one, to others. An
// image stays as it is where nothing does that, as when it is one pixel wide.
func (p *Plan) perspective(to [4][2]float64, f kernel.Filter, fill [3]byte) error {
	k, ok := perspectiveOf(p.info.W, p.info.H, to)
	if !ok {
		return p.bytes()
	}
	return p.Apply(perspective, p.info.W, p.info.H,
		k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], float64(f), packFill(fill))
}

// perspectiveOf returns the coefficients a to h, in float32 as in torchvision, of
//
//	x' = (ax + by + c) / (gx + hy + 1)    y' = (dx + ey + f) / (gx + hy + 1)
//
// that take the points to back to the corners of an image of w x h pixels.
func perspectiveOf(w, h int, to [4][2]float64) (k [8]float64, ok bool) {
	right, below := float64(w-1), float64(h-1)
	from := [4][2]float64{{0, 0}, {right, 0}, {right, below}, {0, below}}
	var m [8][9]float64 // the last column is the right-hand side
	for i, t := range to {
		s := from[i]
		m[2*i] = [9]float64{t[0], t[1], 1, 0, 0, 0, -s[0] * t[0], -s[0] * t[1], s[0]}
		m[2*i+1] = [9]float64{0, 0, 0, t[0], t[1], 1, -s[1] * t[0], -s[1] * t[1], s[1]}
	}
	if ok = solve(&m); ok {
		for i := range k {
			k[i] = float64(float32(m[i][8]))
		}
	}
	return k, ok
}

// solve turns the last column of m into the solution, by elimination with pivots. It
// returns false if there is none, or several.
func solve(m *[8][9]float64) bool {
	for c := range m {
		best := c
		for r := c + 1; r < len(m); r++ {
			if math.Abs(m[r][c]) > math.Abs(m[best][c]) {
				best = r
			}
		}
		m[c], m[best] = m[best], m[c]
		if math.Abs(m[c][c]) < 1e-9 {
			return false
		}
		for r := range m {
			if r == c {
				continue
			}
			factor := m[r][c] / m[c][c]
			for i := c; i < len(m[r]); i++ {
				m[r][i] -= float64(factor * m[c][i])
			}
		}
	}
	for c := range m {
		m[c][8] /= m[c][c]
	}
	return true
}

// perspective resamples the image as Pillow's transform(PERSPECTIVE) does: args are the
// eight coefficients, the filter and the color of what is outside.
func perspective(m, other *Image, a OpArgs) {
	fill, sample := unpackFill(a[9]), samplerOf(a[8])
	other.Reshape(m.W, m.H, m.C)
	for y := range other.H {
		out := other.Row(y)
		for x := range other.W {
			px, py := float64(x)+0.5, float64(y)+0.5
			depth := float64(a[6]*px) + float64(a[7]*py) + 1
			u := (float64(a[0]*px) + float64(a[1]*py) + a[2]) / depth
			v := (float64(a[3]*px) + float64(a[4]*py) + a[5]) / depth
			sample(out[x*other.C:][:other.C], m, u, v, fill)
		}
	}
	*m, *other = *other, *m
}
