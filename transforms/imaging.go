package transforms

import (
	"image"
	"image/color"
	"math"

	"github.com/disintegration/imaging"
)

// The transforms of this file follow github.com/disintegration/imaging pixel by pixel. That package works on copies
// that it allocates, and spreads Rotate, Blur and Sharpen over all cores.

func init() {
	Register[Rotate]()
	Register[Blur]()
	Register[Sharpen]()
	Register[AdjustGamma]()
	Register[AdjustBrightness]()
	Register[AdjustContrast]()
	Register[AdjustSaturation]()
}

// viaImaging replaces m by the result of an operation of package imaging, which works on images of
// its own type.
func viaImaging(m *Image, f func(image.Image) *image.NRGBA) {
	out := f(opaque(m, m.W, m.H))
	m.Reshape(out.Rect.Dx(), out.Rect.Dy(), m.C)
	take(m, out)
}

// inOneRow is viaImaging for an operation that looks at each pixel alone. All pixels are one row
// then, because imaging starts goroutines per rows.
func inOneRow(m *Image, f func(image.Image) *image.NRGBA) { take(m, f(opaque(m, m.W*m.H, 1))) }

// opaque returns the pixels of m as an NRGBA image of w by h without transparency. A gray pixel is
// repeated for red, green and blue.
func opaque(m *Image, w, h int) *image.NRGBA {
	in := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		p := in.Pix[4*i:][:4]
		p[0], p[1], p[2], p[3] = m.Pix[i*m.C], m.Pix[i*m.C+m.C/2], m.Pix[i*m.C+m.C-1], 255
	}
	return in
}

// take copies the channels of m out of an NRGBA image.
func take(m *Image, from *image.NRGBA) {
	for i := range m.W * m.H {
		copy(m.Pix[i*m.C:(i+1)*m.C], from.Pix[4*i:])
	}
}

// Rotate turns an image counter-clockwise. The result is larger than the image, so that nothing is
// cut off.
type Rotate struct {
	Angle float64 `json:"angle" in:"[-1e6,1e6]"`        // degrees
	Fill  []int   `json:"fill" default:"[0]" is:"fill"` // as in Pad
}

// Build adds the rotation.
func (t Rotate) Build(p *Plan) error {
	in := p.Info()
	w, h := rotatedSize(in.W, in.H, t.Angle)
	if err := p.apply(rotate, w, h, t.Angle, packFill(fillBytes(t.Fill))); err != nil {
		return err
	}
	a := warp(-t.Angle, 0, 0, 1, 0, 0, 0, 0)
	p.moved(moveAffine, [4]int{}, a[:]...)
	return nil
}

func rotate(m, _ *Image, args OpArgs) {
	f := unpackFill(args[1])
	viaImaging(m, func(in image.Image) *image.NRGBA {
		return imaging.Rotate(in, args[0], color.NRGBA{f[0], f[1], f[2], 255})
	})
}

// rotatedSize returns the size of package imaging's result for w x h pixels. The plan needs the
// size before the image exists, so that the formula is repeated here.
func rotatedSize(w, h int, angle float64) (int, int) {
	switch angle -= math.Floor(angle/360) * 360; angle {
	case 0, 180:
		return w, h
	case 90, 270:
		return h, w
	}
	sin, cos := math.Sincos(math.Pi * angle / 180)
	dx, dy := float64(w-1), float64(h-1)
	length := func(corners ...float64) int {
		lo, hi := 0.0, 0.0
		for _, v := range corners {
			lo, hi = min(lo, v), max(hi, v)
		}
		n := hi - lo + 1
		if n-math.Floor(n) > 0.1 {
			n++
		}
		return int(n)
	}
	return length(float64(dx*cos), float64(dx*cos)-float64(dy*sin), -float64(dy*sin)),
		length(float64(dx*sin), float64(dx*sin)+float64(dy*cos), float64(dy*cos))
}

// The operations of package imaging that have one parameter. The last four map pixel by pixel.
var (
	imagingBlur       = imagingOp(viaImaging, imaging.Blur)
	imagingSharpen    = imagingOp(viaImaging, imaging.Sharpen)
	imagingGamma      = imagingOp(inOneRow, imaging.AdjustGamma)
	imagingBrightness = imagingOp(inOneRow, imaging.AdjustBrightness)
	imagingContrast   = imagingOp(inOneRow, imaging.AdjustContrast)
	imagingSaturation = imagingOp(inOneRow, imaging.AdjustSaturation)
)

// imagingOp returns the ImageOp for a function of package imaging; via converts the image.
func imagingOp(via func(*Image, func(image.Image) *image.NRGBA),
	f func(image.Image, float64) *image.NRGBA) ImageOp {
	return func(m, _ *Image, args OpArgs) {
		via(m, func(in image.Image) *image.NRGBA { return f(in, args[0]) })
	}
}

// Blur is a Gaussian blur, as package imaging computes it.
type Blur struct {
	Sigma float64 `json:"sigma" in:"(0,inf)"` // deviation in pixels
}

// Build adds the blur.
func (t Blur) Build(p *Plan) error {
	return addChange(p, imagingBlur, t.Sigma)
}

// Sharpen sharpens an image: it subtracts a blurred copy, made by a Gaussian.
type Sharpen struct {
	Sigma float64 `json:"sigma" in:"(0,inf)"` // deviation in pixels
}

// Build adds the operation.
func (t Sharpen) Build(p *Plan) error {
	return addChange(p, imagingSharpen, t.Sigma)
}

// AdjustGamma brightens the middle tones if Gamma is above 1, and darkens them below.
type AdjustGamma struct {
	Gamma float64 `json:"gamma" in:"(0,inf)"`
}

// Build adds the operation.
func (t AdjustGamma) Build(p *Plan) error {
	return addChange(p, imagingGamma, t.Gamma)
}

// AdjustBrightness adds a share of white, or of black if Percentage is negative.
type AdjustBrightness struct {
	Percentage float64 `json:"percentage" in:"[-100,100]"`
}

// Build adds the operation.
func (t AdjustBrightness) Build(p *Plan) error {
	return addChange(p, imagingBrightness, t.Percentage)
}

// AdjustContrast spreads the levels about the middle gray.
type AdjustContrast struct {
	Percentage float64 `json:"percentage" in:"[-100,100]"`
}

// Build adds the operation.
func (t AdjustContrast) Build(p *Plan) error {
	return addChange(p, imagingContrast, t.Percentage)
}

// AdjustSaturation multiplies the saturation in the HSL color space.
type AdjustSaturation struct {
	Percentage float64 `json:"percentage" in:"[-100,100]"` // -100 (gray) to 100 (doubled)
}

// Build adds the operation.
func (t AdjustSaturation) Build(p *Plan) error {
	return addChange(p, imagingSaturation, t.Percentage)
}
