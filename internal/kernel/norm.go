package kernel

import "github.com/penstock/penstock/tensor"

// Norm converts bytes to numbers: for each channel the 256 results, computed step by step in
// float32, so that the tables are torchvision's ToTensor and Normalize bit for bit.
type Norm struct {
	f32  [3][256]float32
	u16  [3][256]uint16 // float16 or bfloat16 bits of f32, rounded to nearest even
	fast fastNorm
}

// Init fills the tables with
//
//	scaled     y = (x/255 - mean) / std
//	not scaled y = (x - mean) / std
//
// for each channel of mean and std (1 or 3 of both; nil means 0 and 1, that is, no such
// step). dt is Float32, Float16 or BFloat16 and says what U16 results are.
func (n *Norm) Init(dt tensor.DType, scaled bool, mean, std []float32) {
	if len(mean) != len(std) {
		panic("kernel: Norm of as many means as deviations only")
	}
	for c := range n.f32 {
		for x := range n.f32[c] {
			y := float32(x)
			if scaled {
				y = y / 255
			}
			if len(mean) > 0 {
				i := c % len(mean)
				y = y - mean[i]
				y = y / std[i]
			}
			n.f32[c][x] = y
			n.u16[c][x] = bits16(dt, y)
		}
	}
	n.fast.init(n, dt, scaled, mean, std)
}

func bits16(dt tensor.DType, y float32) uint16 {
	switch dt {
	case tensor.Float16:
		return uint16(tensor.HalfOf(y))
	case tensor.BFloat16:
		return uint16(tensor.BrainOf(y))
	}
	return 0
}

// At returns the result for byte x of channel c.
func (n *Norm) At(c int, x byte) float32 { return n.f32[c][x] }

// F32 converts bytes of channel c: dst[i] = At(c, src[i]).
func (n *Norm) F32(dst []float32, src []byte, c int) {
	if len(src) < len(dst) {
		panic("kernel: F32 of too few bytes")
	}
	t := &n.f32[c]
	for i := n.f32Fast(dst, src, c); i < len(dst); i++ {
		dst[i] = t[src[i]]
	}
}

// U16 is F32 for float16 and bfloat16, as bits.
func (n *Norm) U16(dst []uint16, src []byte, c int) {
	if len(src) < len(dst) {
		panic("kernel: U16 of too few bytes")
	}
	t := &n.u16[c]
	for i := n.u16Fast(dst, src, c); i < len(dst); i++ {
		dst[i] = t[src[i]]
	}
}

// PlanesF32 converts RGB pixels, step bytes apart, to three planes of one length.
func (n *Norm) PlanesF32(r, g, b []float32, src []byte, step int) {
	checkPixels(len(src), len(r), step, 3)
	if len(g) != len(r) || len(b) != len(r) {
		panic("kernel: PlanesF32 of several lengths")
	}
	t := &n.f32
	for i := n.planesF32Fast(r, g, b, src, step); i < len(r); i++ {
		p := src[i*step:][:3]
		r[i], g[i], b[i] = t[0][p[0]], t[1][p[1]], t[2][p[2]]
	}
}

// PlanesU16 is PlanesF32 for float16 and bfloat16, as bits.
func (n *Norm) PlanesU16(r, g, b []uint16, src []byte, step int) {
	checkPixels(len(src), len(r), step, 3)
	if len(g) != len(r) || len(b) != len(r) {
		panic("kernel: PlanesU16 of several lengths")
	}
	t := &n.u16
	for i := n.planesU16Fast(r, g, b, src, step); i < len(r); i++ {
		p := src[i*step:][:3]
		r[i], g[i], b[i] = t[0][p[0]], t[1][p[1]], t[2][p[2]]
	}
}

// PixelsF32 converts RGB pixels, which are step bytes apart, to triples of float32:
// len(dst)/3 pixels.
func (n *Norm) PixelsF32(dst []float32, src []byte, step int) {
	checkPixels(len(src), len(dst)/3, step, 3)
	t := &n.f32
	for i := n.pixelsF32Fast(dst, src, step); i < len(dst)/3; i++ {
		d, p := dst[i*3:][:3], src[i*step:][:3]
		d[0], d[1], d[2] = t[0][p[0]], t[1][p[1]], t[2][p[2]]
	}
}

// PixelsU16 is PixelsF32 for float16 and bfloat16, as bits.
func (n *Norm) PixelsU16(dst []uint16, src []byte, step int) {
	checkPixels(len(src), len(dst)/3, step, 3)
	t := &n.u16
	for i := n.pixelsU16Fast(dst, src, step); i < len(dst)/3; i++ {
		d, p := dst[i*3:][:3], src[i*step:][:3]
		d[0], d[1], d[2] = t[0][p[0]], t[1][p[1]], t[2][p[2]]
	}
}
