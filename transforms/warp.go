package transforms

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

// matrix maps output positions to input positions: x' = m[0]x + m[1]y + m[2], and y' by the other
// three numbers. Warps go backwards, so that every output pixel gets a value.
type matrix [6]float64

// affine resamples the image by a matrix, as Pillow's transform(AFFINE) does. args are the matrix,
// the filter (nearest, bilinear or bicubic), the color of pixels from outside of the image, and
// the output's width and height. Pillow has three routines with different arithmetic, and chooses
// as affine does; the pixels depend on it.
func affine(m, other *Image, args OpArgs) {
	a := matrix(args[:6])
	fill := unpackFill(args[7])
	other.Reshape(int(args[8]), int(args[9]), m.C)
	switch {
	case kernel.Filter(args[6]) != kernel.Nearest:
		affineSmooth(other, m, a, samplerOf(args[6]), fill)
	case a[1] == 0 && a[3] == 0:
		scaleNearest(other, m, a, fill)
	default:
		affineNearest(other, m, a, fill)
	}
	*m, *other = *other, *m
}

// packFill packs three bytes into a number: OpArgs hold numbers only.
func packFill(f [3]byte) float64 { return float64(int(f[0])<<16 | int(f[1])<<8 | int(f[2])) }

func unpackFill(v float64) [3]byte {
	return [3]byte{byte(int(v) >> 16), byte(int(v) >> 8), byte(int(v))}
}

// affineNearest is Pillow's affine_fixed. It steps through positions with 16 bits of fraction,
// whose rounding errors add up along a row just as they do in Pillow.
func affineNearest(dst, src *Image, a matrix, fill [3]byte) {
	fix := func(v float64) int { return int(math.Floor(float64(v*65536) + 0.5)) }
	x0 := fix(a[2] + float64(a[0]*0.5) + float64(a[1]*0.5))
	y0 := fix(a[5] + float64(a[3]*0.5) + float64(a[4]*0.5))
	dx, dy := fix(a[0]), fix(a[3])
	for y := range dst.H {
		out := dst.Row(y)
		u, v := x0, y0
		for i := 0; i < len(out); i += dst.C {
			pick(out[i:i+dst.C], src, u>>16, v>>16, fill)
			u += dx
			v += dy
		}
		x0 += fix(a[1])
		y0 += fix(a[4])
	}
}

// scaleNearest is Pillow's ImagingScaleAffine, which adds steps in double precision.
func scaleNearest(dst, src *Image, a matrix, fill [3]byte) {
	v := a[5] + float64(a[4]*0.5)
	for y := range dst.H {
		out := dst.Row(y)
		u := a[2] + float64(a[0]*0.5)
		for i := 0; i < len(out); i += dst.C {
			pick(out[i:i+dst.C], src, int(math.Floor(u)), int(math.Floor(v)), fill)
			u += a[0]
		}
		v += a[4]
	}
}

// pick copies one pixel, or fill if the position is outside of the image.
func pick(dst []byte, src *Image, x, y int, fill [3]byte) {
	if x < 0 || y < 0 || x >= src.W || y >= src.H {
		copy(dst, fill[:])
		return
	}
	copy(dst, src.Pix[y*src.Stride+x*src.C:])
}

// sampler computes the pixel at position (u, v) of src, or fill if the position is outside.
type sampler func(dst []byte, src *Image, u, v float64, fill [3]byte)

// samplerOf returns the sampler of a filter. OpArgs hold the filter as a number.
func samplerOf(filter float64) sampler {
	switch kernel.Filter(filter) {
	case kernel.Bilinear:
		return mixPixel
	case kernel.Bicubic:
		return cubicPixel
	}
	return nearestPixel
}

// nearestPixel takes the pixel that contains the position, without a blend.
func nearestPixel(dst []byte, src *Image, u, v float64, fill [3]byte) {
	pick(dst, src, int(math.Floor(u)), int(math.Floor(v)), fill)
}

// affineSmooth is Pillow's generic transform: every position is computed from scratch.
func affineSmooth(dst, src *Image, a matrix, sample sampler, fill [3]byte) {
	for y := range dst.H {
		out := dst.Row(y)
		for x := range dst.W {
			u := float64(a[0]*(float64(x)+0.5)) + float64(a[1]*(float64(y)+0.5)) + a[2]
			v := float64(a[3]*(float64(x)+0.5)) + float64(a[4]*(float64(y)+0.5)) + a[5]
			sample(out[x*dst.C:][:dst.C], src, u, v, fill)
		}
	}
}

// mixPixel is Pillow's bilinear filter, which truncates the result instead of rounding it.
func mixPixel(dst []byte, src *Image, u, v float64, fill [3]byte) {
	if !(u >= 0 && u < float64(src.W) && v >= 0 && v < float64(src.H)) {
		copy(dst, fill[:])
		return
	}
	u, v = u-0.5, v-0.5
	x, y := int(math.Floor(u)), int(math.Floor(v))
	dx, dy := u-float64(x), v-float64(y)
	left, right := max(x, 0)*src.C, min(x+1, src.W-1)*src.C
	above, below := src.Row(max(y, 0)), src.Row(min(y+1, src.H-1))
	mix := func(a, b, d float64) float64 { return a + float64((b-a)*d) }
	for c := range dst {
		top := mix(float64(above[left+c]), float64(above[right+c]), dx)
		low := mix(float64(below[left+c]), float64(below[right+c]), dx)
		dst[c] = byte(mix(top, low, dy))
	}
}

// cubicPixel is Pillow's bicubic filter (Geometry.c), which truncates too. Rows below the image
// repeat the row above them, as Pillow does.
func cubicPixel(dst []byte, src *Image, u, v float64, fill [3]byte) {
	if !(u >= 0 && u < float64(src.W) && v >= 0 && v < float64(src.H)) {
		copy(dst, fill[:])
		return
	}
	u, v = u-0.5, v-0.5
	x, y := int(math.Floor(u)), int(math.Floor(v))
	dx, dy := u-float64(x), v-float64(y)
	var at [4]int
	for i := range at {
		at[i] = max(0, min(x-1+i, src.W-1)) * src.C
	}
	for c := range dst {
		var rows [4]float64
		for i := range rows {
			if k := y - 1 + i; i == 0 || k >= 0 && k < src.H {
				row := src.Row(max(0, min(k, src.H-1)))
				rows[i] = cubic(float64(row[at[0]+c]), float64(row[at[1]+c]), float64(row[at[2]+c]), float64(row[at[3]+c]), dx)
			} else {
				rows[i] = rows[i-1]
			}
		}
		dst[c] = byte(max(0, min(cubic(rows[0], rows[1], rows[2], rows[3], dy), 255)))
	}
}

// cubic interpolates between b and c at t, by Pillow's polynomial and order of operations.
func cubic(a, b, c, d, t float64) float64 {
	p2, p3, p4 := c-a, float64(2*(a-b))+c-d, b-a-c+d
	return b + float64(t*(p2+float64(t*(p3+float64(t*p4)))))
}

// warp is torchvision's _get_inverse_affine_matrix: rotate by angle degrees, shear, scale and
// move the image, all about (cx, cy).
func warp(angle, tx, ty, scale, shearX, shearY, cx, cy float64) matrix {
	rot, sx, sy := radians(angle), radians(shearX), radians(shearY)
	a := math.Cos(rot-sy) / math.Cos(sy)
	b := float64(-math.Cos(rot-sy)*math.Tan(sx))/math.Cos(sy) - math.Sin(rot)
	c := math.Sin(rot-sy) / math.Cos(sy)
	d := float64(-math.Sin(rot-sy)*math.Tan(sx))/math.Cos(sy) + math.Cos(rot)
	m := matrix{d / scale, -b / scale, 0, -c / scale, a / scale, 0}
	m[2] = float64(m[0]*(-cx-tx)) + float64(m[1]*(-cy-ty)) + cx
	m[5] = float64(m[3]*(-cx-tx)) + float64(m[4]*(-cy-ty)) + cy
	return m
}

// radians multiplies by pi/180 in double precision, as Python does. The variable keeps Go from
// folding the constants exactly.
func radians(degrees float64) float64 {
	pi := float64(math.Pi)
	return float64(degrees * (pi / 180))
}

// rotation is the matrix of Pillow's rotate, counter-clockwise about (cx, cy).
func rotation(angle, cx, cy float64) matrix {
	rad := -radians(math.Mod(math.Mod(angle, 360)+360, 360))
	cos, sin := round15(math.Cos(rad)), round15(math.Sin(rad))
	m := matrix{cos, sin, 0, -sin, cos, 0}
	m[2] = float64(m[0]*-cx) + float64(m[1]*-cy) + cx
	m[5] = float64(m[3]*-cx) + float64(m[4]*-cy) + cy
	return m
}

// round15 rounds to 15 decimals, as Python's round does, so that right angles are exact.
func round15(v float64) float64 {
	n := math.RoundToEven(v * 1e15)
	switch off := math.FMA(v, 1e15, -n); { // the product above was rounded itself
	case off > 0.5:
		n++
	case off < -0.5:
		n--
	}
	return n / 1e15
}

// addWarp resamples the image by a matrix that maps output to input positions.
func addWarp(p *Plan, m matrix, f kernel.Filter, fill [3]byte) error {
	return addCentered(p, m, m.fromCenter(p.info.W, p.info.H), f, fill)
}

// addCentered is addWarp with two forms of one matrix. centered maps positions relative to the
// center of the image, without the rounding that offsets bring into m. Labels follow centered,
// since torchvision computes with it.
func addCentered(p *Plan, m, centered matrix, f kernel.Filter, fill [3]byte) error {
	return addSized(p, m, centered, p.info.W, p.info.H, f, fill)
}

// addSized is addCentered for an image that becomes w x h pixels; centered is relative to the
// center of the result.
func addSized(p *Plan, m, centered matrix, w, h int, f kernel.Filter, fill [3]byte) error {
	err := p.apply(affine, w, h, m[0], m[1], m[2], m[3], m[4], m[5], float64(f), packFill(fill), float64(w), float64(h))
	if err == nil {
		p.moved(moveAffine, [4]int{}, centered[:]...)
	}
	return err
}

// fromCenter returns the matrix for positions relative to the center of w x h pixels.
func (m matrix) fromCenter(w, h int) matrix {
	cx, cy := float64(w)/2, float64(h)/2
	m[2] += float64(m[0]*cx) + float64(m[1]*cy) - cx
	m[5] += float64(m[3]*cx) + float64(m[4]*cy) - cy
	return m
}

// addRotation turns the image counter-clockwise about (cx, cy).
func addRotation(p *Plan, angle, cx, cy float64, f kernel.Filter, fill [3]byte) error {
	x, y := cx-float64(p.info.W)/2, cy-float64(p.info.H)/2
	centered := warp(-math.Mod(math.Mod(angle, 360)+360, 360), 0, 0, 1, 0, 0, x, y)
	return addCentered(p, rotation(angle, cx, cy), centered, f, fill)
}

// addExpandedRotation turns the image counter-clockwise about its center, with the size that Pillow's rotate gives it
// so that nothing is cut off.
func addExpandedRotation(p *Plan, angle float64, f kernel.Filter, fill [3]byte) error {
	w, h := float64(p.info.W), float64(p.info.H)
	m := rotation(angle, w/2, h/2)
	nw, nh := expanded(m, angle, p.info.W, p.info.H)
	dx, dy := -float64(nw-p.info.W)/2, -float64(nh-p.info.H)/2
	m[2], m[5] = m.at(dx, dy)
	return addSized(p, m, warp(-math.Mod(math.Mod(angle, 360)+360, 360), 0, 0, 1, 0, 0, 0, 0), nw, nh, f, fill)
}

// at returns the input position of an output position, with Pillow's order of additions.
func (m matrix) at(x, y float64) (float64, float64) {
	return float64(m[0]*x) + float64(m[1]*y) + m[2], float64(m[3]*x) + float64(m[4]*y) + m[5]
}

// expanded returns the size of w x h pixels after a turn by angle. Multiples of 90 degrees are
// exact, as in Pillow.
func expanded(m matrix, angle float64, w, h int) (int, int) {
	switch math.Mod(math.Mod(angle, 360)+360, 360) {
	case 0, 180:
		return w, h
	case 90, 270:
		return h, w
	}
	fw, fh := float64(w), float64(h)
	x, y := m.at(0, 0)
	left, right, top, bottom := x, x, y, y
	for _, corner := range [3][2]float64{{fw, 0}, {fw, fh}, {0, fh}} {
		x, y := m.at(corner[0], corner[1])
		left, right, top, bottom = min(left, x), max(right, x), min(top, y), max(bottom, y)
	}
	return int(math.Ceil(right) - math.Floor(left)), int(math.Ceil(bottom) - math.Floor(top))
}

// parseWarpFilter returns the named filter, and an error for a filter that warps do not have.
func parseWarpFilter(name string) (kernel.Filter, error) {
	switch name {
	case "nearest":
		return kernel.Nearest, nil
	case "bilinear":
		return kernel.Bilinear, nil
	case "bicubic":
		return kernel.Bicubic, nil
	}
	return 0, fmt.Errorf("interpolation %q must be nearest, bilinear or bicubic", name)
}

func init() { Register[RandomPerspective]() }

// RandomPerspective moves the corners of an image inwards by random distances, as if the image was
// seen from the side. The size stays the same. torchvision solves for the mapping by least squares,
// whose rounding moves a pixel here and there, and all of them where the corners nearly coincide.
type RandomPerspective struct {
	// most that a corner moves, as a share of half the image, 0 to 1; nil means 0.5
	Distortion    *float64 `json:"distortion_scale" default:"0.5" in:"[0,1]"`
	P             *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
	Interpolation string   `json:"interpolation" default:"bilinear" choices:"nearest bilinear bicubic"`
	Fill          []int    `json:"fill" default:"[0]" is:"fill"` // as in Pad
}

// Build draws where the corners go.
func (t RandomPerspective) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	r, in := p.Rand(), p.Info()
	if r.Float64() >= *t.P {
		return p.bytes()
	}
	right, below := float64(in.W-1), float64(in.H-1)
	across, down := int(*t.Distortion*float64(in.W/2)), int(*t.Distortion*float64(in.H/2))
	x := func() float64 { return float64(r.IntN(across + 1)) }
	y := func() float64 { return float64(r.IntN(down + 1)) }
	corners := [4][2]float64{{x(), y()}, {right - x(), y()}, {right - x(), below - y()}, {x(), below - y()}}
	return addPerspective(p, corners, f, fillBytes(t.Fill))
}

func (RandomPerspective) Randomized() {}

// addPerspective moves the image's corners, clockwise from the upper left one, to the places in to.
// An image stays as it is if no mapping moves its corners there: an image one pixel wide, for
// instance.
func addPerspective(p *Plan, to [4][2]float64, f kernel.Filter, fill [3]byte) error {
	k, ok := perspectiveOf(p.info.W, p.info.H, to)
	if !ok {
		return p.bytes()
	}
	err := p.apply(perspective, p.info.W, p.info.H,
		k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], float64(f), packFill(fill))
	if err == nil {
		p.moved(movePerspective, [4]int{}, k[:]...)
	}
	return err
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

// solve turns the last column of m into the solution, by Gauss-Jordan elimination with pivots. It
// returns false if there is no solution, or more than one.
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
// eight coefficients, the filter and the color of pixels from outside of the image.
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
