//go:build !purego

package vec

import (
	"math"

	"github.com/penstock/penstock/tensor"
)

// fastNorm holds the coefficients of the kernels, which multiply by reciprocals in two parts
// where the definition divides. That gives the same float32 for nearly every divisor, and as
// there are 256 inputs, initFast simply looks; ok says whether it does here.
type fastNorm struct {
	ok      bool
	bf16    bool
	channel [3][11][8]float32 // all bytes of one channel
	planes  [11][8]float32    // phase c is channel c
	pixels  [11][8]float32    // byte i is channel i%3
}

func (n *Norm) initFast(dt tensor.DType, scaled bool, mean, std []float32) {
	f := &n.fast
	f.ok, f.bf16 = useAVX2, dt == tensor.BFloat16
	if !f.ok {
		return
	}
	var of [3]coefficients
	for c := range of {
		of[c] = coefficientsOf(scaled, mean, std, c)
		fillTable(&f.channel[c], func(int) coefficients { return of[c] })
	}
	fillTable(&f.planes, func(i int) coefficients { return of[i/8] })
	fillTable(&f.pixels, func(i int) coefficients { return of[i%3] })
	f.ok = n.kernelsAgree(dt)
}

// coefficients of one byte: y = (x*unit - mean) * std, with both factors in two parts.
type coefficients struct{ unitHi, unitLo, mean, stdHi, stdLo float32 }

func coefficientsOf(scaled bool, mean, std []float32, c int) coefficients {
	k := coefficients{unitHi: 1, stdHi: 1}
	if scaled {
		k.unitHi, k.unitLo = reciprocal(255)
	}
	if len(mean) > 0 {
		k.mean = mean[c%len(mean)]
		k.stdHi, k.stdLo = reciprocal(std[c%len(std)])
	}
	return k
}

// reciprocal returns 1/x as the sum of two numbers.
func reciprocal(x float32) (hi, lo float32) {
	hi = float32(1 / float64(x))
	return hi, float32(1/float64(x) - float64(hi))
}

// fillTable lays out the coefficients of each of 24 neighbouring bytes.
func fillTable(t *[11][8]float32, of func(i int) coefficients) {
	for i := range 24 {
		k, row, col := of(i), i/8*3+2, i%8
		t[0][col], t[1][col] = k.unitHi, k.unitLo
		t[row][col], t[row+1][col], t[row+2][col] = k.mean, k.stdHi, k.stdLo
	}
}

// kernelsAgree compares the kernel's results with the tables, bit for bit.
func (n *Norm) kernelsAgree(dt tensor.DType) bool {
	var x [256]byte
	for i := range x {
		x[i] = byte(i)
	}
	for c := range n.f32 {
		var y [256]float32
		normF32(&y[0], &x[0], len(x), &n.fast.channel[c])
		for i := range y {
			if math.Float32bits(y[i]) != math.Float32bits(n.f32[c][i]) {
				return false
			}
		}
		if dt == tensor.Float32 {
			continue
		}
		var h [256]uint16
		if n.u16Fast(h[:], x[:], c); h != n.u16[c] {
			return false
		}
	}
	return true
}

func (n *Norm) f32Fast(dst []float32, src []byte, c int) int {
	if !n.fast.ok || len(dst) < 24 {
		return 0
	}
	normF32(&dst[0], &src[0], len(dst), &n.fast.channel[c])
	return len(dst)
}

func (n *Norm) u16Fast(dst []uint16, src []byte, c int) int {
	return n.flat16(dst, src, &n.fast.channel[c])
}

func (n *Norm) pixelsF32Fast(dst []float32, src []byte, step int) int {
	if !n.fast.ok || step != 3 || len(dst) < 24 {
		return 0
	}
	normF32(&dst[0], &src[0], len(dst)/3*3, &n.fast.pixels)
	return len(dst) / 3
}

func (n *Norm) pixelsU16Fast(dst []uint16, src []byte, step int) int {
	if step != 3 {
		return 0
	}
	return n.flat16(dst[:len(dst)/3*3], src, &n.fast.pixels) / 3
}

func (n *Norm) flat16(dst []uint16, src []byte, t *[11][8]float32) int {
	if !n.fast.ok || len(dst) < 24 {
		return 0
	}
	if n.fast.bf16 {
		normBF16(&dst[0], &src[0], len(dst), t)
	} else {
		normF16(&dst[0], &src[0], len(dst), t)
	}
	return len(dst)
}

func (n *Norm) planesF32Fast(r, g, b []float32, src []byte, step int) int {
	m := wholePixels(len(r), src, step)
	if !n.fast.ok || m < 8 {
		return 0
	}
	planesF32(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &n.fast.planes)
	return m
}

func (n *Norm) planesU16Fast(r, g, b []uint16, src []byte, step int) int {
	m := wholePixels(len(r), src, step)
	if !n.fast.ok || m < 8 {
		return 0
	}
	if n.fast.bf16 {
		planesBF16(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &n.fast.planes)
	} else {
		planesF16(&r[0], &g[0], &b[0], &src[0], m, step, wideMasks[step], &n.fast.planes)
	}
	return m
}
