//go:build (amd64 || arm64) && !purego

package kernel

import (
	"math"

	"github.com/penstock/penstock/tensor"
)

// fastNorm holds the coefficients of the kernels, which multiply where the definition
// divides: by reciprocals in two parts, or for 16 bits by a single factor. That gives the
// same numbers for nearly all divisors, and as there are but 256 inputs, init looks.
type fastNorm struct {
	mode    normMode
	bf16    bool
	channel [3]normTables // all bytes of one channel
	planes  normTables    // phase c is channel c
	pixels  normTables    // byte i is channel i%3
}

type normMode uint8

const (
	normLoop   normMode = iota // look each byte up
	normExact                  // kernels that round as the definition does
	normAffine                 // kernels that round once, for 16 bits
)

// normTables has the coefficients of 24 neighboring bytes in the order of the kernels.
type normTables struct {
	exact  [11][8]float32
	affine [6][8]float32
}

func (f *fastNorm) init(n *Norm, dt tensor.DType, scaled bool, mean, std []float32) {
	f.mode, f.bf16 = normLoop, dt == tensor.BFloat16
	if !useKernels {
		return
	}
	var of [3]coefficients
	for c := range of {
		of[c] = coefficientsOf(scaled, mean, std, c)
		f.channel[c].fill(func(int) coefficients { return of[c] })
	}
	f.planes.fill(func(i int) coefficients { return of[i/8] })
	f.pixels.fill(func(i int) coefficients { return of[i%3] })
	for _, mode := range []normMode{normAffine, normExact} {
		if mode == normAffine && dt == tensor.Float32 {
			continue
		}
		if f.mode = mode; n.kernelsAgree(dt) {
			return
		}
	}
	f.mode = normLoop
}

// coefficients of one byte: y = (x/unit - mean) * std with std in two parts, which is about
// x*scale + bias.
type coefficients struct{ unit, mean, stdHi, stdLo, scale, bias float32 }

func coefficientsOf(scaled bool, mean, std []float32, c int) coefficients {
	unit, m, s := float32(1), float32(0), float32(1)
	if scaled {
		unit = 255
	}
	if len(mean) > 0 {
		m, s = mean[c%len(mean)], std[c%len(std)]
	}
	k := coefficients{unit: unit, mean: m}
	k.stdHi, k.stdLo = reciprocal(s)
	k.scale = float32(1 / (float64(unit) * float64(s)))
	k.bias = float32(-float64(m) / float64(s))
	return k
}

// exactUnit returns the coefficients as the exact kernels have them, and for a column of
// their tables what stands in the first two rows: what share of a number they add to it, and
// which bytes of the mask for a byte are to make the integer that they begin with. If the
// unit is 255, that is the byte three times; it is about x/255 * 2^24, which the other
// coefficients are scaled to.
func (k coefficients) exactUnit(col int) (scaled coefficients, again, bytes float32) {
	first, none := uint32(col%4*4), uint32(0x80)
	if k.unit != 255 {
		return k, 0, math.Float32frombits(none<<24 | none<<16 | none<<8 | first)
	}
	k.mean, k.stdHi, k.stdLo = k.mean*(1<<24), k.stdHi/(1<<24), k.stdLo/(1<<24)
	return k, 1.0 / (1 << 24), math.Float32frombits(none<<24 | first<<16 | first<<8 | first)
}

// reciprocal returns 1/x as the sum of two numbers.
func reciprocal(x float32) (hi, lo float32) {
	hi = float32(1 / float64(x))
	return hi, float32(1/float64(x) - float64(hi))
}

// fill lays out the coefficients of each of 24 neighboring bytes.
func (t *normTables) fill(of func(i int) coefficients) {
	for i := range 24 {
		k, phase, col := of(i), i/8, i%8
		k, t.exact[0][col], t.exact[1][col] = k.exactUnit(col)
		e := t.exact[3*phase+2:]
		e[0][col], e[1][col], e[2][col] = k.mean, k.stdHi, k.stdLo
		a := t.affine[2*phase:]
		a[0][col], a[1][col] = k.scale, k.bias
	}
}

// kernelsAgree compares the kernel's results with the tables, bit for bit.
func (n *Norm) kernelsAgree(dt tensor.DType) bool {
	var x [256]byte
	for i := range x {
		x[i] = byte(i)
	}
	for c := range n.f32 {
		if dt != tensor.Float32 {
			var h [256]uint16
			if n.u16Fast(h[:], x[:], c); h != n.u16[c] {
				return false
			}
			continue
		}
		var y [256]float32
		n.f32Fast(y[:], x[:], c)
		for i := range y {
			if math.Float32bits(y[i]) != math.Float32bits(n.f32[c][i]) {
				return false
			}
		}
	}
	return true
}

func (n *Norm) f32Fast(dst []float32, src []byte, c int) int {
	if n.fast.mode != normExact || len(dst) < 24 {
		return 0
	}
	normF32(&dst[0], &src[0], len(dst), &n.fast.channel[c].exact)
	return len(dst)
}

func (n *Norm) u16Fast(dst []uint16, src []byte, c int) int {
	return n.flat16(dst, src, &n.fast.channel[c])
}

func (n *Norm) pixelsF32Fast(dst []float32, src []byte, step int) int {
	if n.fast.mode != normExact || step != 3 || len(dst) < 24 {
		return 0
	}
	normF32(&dst[0], &src[0], len(dst)/3*3, &n.fast.pixels.exact)
	return len(dst) / 3
}

func (n *Norm) pixelsU16Fast(dst []uint16, src []byte, step int) int {
	if step != 3 {
		return 0
	}
	return n.flat16(dst[:len(dst)/3*3], src, &n.fast.pixels) / 3
}

func (n *Norm) flat16(dst []uint16, src []byte, t *normTables) int {
	if len(dst) < 24 {
		return 0
	}
	switch f := &n.fast; {
	case f.mode == normAffine && f.bf16:
		affineBF16(&dst[0], &src[0], len(dst), &t.affine)
	case f.mode == normAffine:
		affineF16(&dst[0], &src[0], len(dst), &t.affine)
	case f.mode == normExact && f.bf16:
		normBF16(&dst[0], &src[0], len(dst), &t.exact)
	case f.mode == normExact:
		normF16(&dst[0], &src[0], len(dst), &t.exact)
	default:
		return 0
	}
	return len(dst)
}

// wideMasks pick the 8 values of a channel, as 32-bit numbers, from 8 pixels, whose second half ends with its
// register.
var wideMasks = [5]*[3][32]byte{3: newWideMasks(3), 4: newWideMasks(4)}

func newWideMasks(step int) *[3][32]byte {
	m := new([3][32]byte)
	for c := range m {
		for j := range m[c] {
			m[c][j] = 0x80
			if j%4 == 0 {
				m[c][j] = pixelByte(step, j/4, c)
			}
		}
	}
	return m
}

func (n *Norm) planesF32Fast(r, g, b []float32, src []byte, step int) int {
	m := wholePixels(len(r), src, step)
	if n.fast.mode != normExact || m < 8 {
		return 0
	}
	planesF32(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &n.fast.planes.exact)
	return m
}

func (n *Norm) planesU16Fast(r, g, b []uint16, src []byte, step int) int {
	m := wholePixels(len(r), src, step)
	if m < 8 {
		return 0
	}
	t := &n.fast.planes
	switch f := &n.fast; {
	case f.mode == normAffine && f.bf16:
		affinePlanesBF16(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &t.affine)
	case f.mode == normAffine:
		affinePlanesF16(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &t.affine)
	case f.mode == normExact && f.bf16:
		planesBF16(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &t.exact)
	case f.mode == normExact:
		planesF16(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &t.exact)
	default:
		return 0
	}
	return m
}
