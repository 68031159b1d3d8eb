package imagefile

import "encoding/binary"

// The inverse transform is libjpeg's jpeg_idct_islow (jidctint.c) in the arithmetic of its
// SIMD version, which agrees with it on all coefficients that an encoder makes: 16-bit
// sums and products wrap, the result of the first pass saturates to 16 bits.

// Constants of jidctint.c: FIX(x) is x * 2^13, rounded.
const (
	fix0298631336 = 2446
	fix0390180644 = 3196
	fix0541196100 = 4433
	fix0765366865 = 6270
	fix0899976223 = 7373
	fix1175875602 = 9633
	fix1501321110 = 12299
	fix1847759065 = 15137
	fix1961570560 = 16069
	fix2053119869 = 16819
	fix2562915447 = 20995
	fix3072711026 = 25172
)

// idctPair transforms two blocks, dequantising them, to 8 rows of 16 samples in dst.
func idctPair(dst []byte, stride int, coefs *[128]int16, quant *[64]uint16) {
	if idctPairFast(dst, stride, coefs, quant) {
		return
	}
	for b := range 2 {
		var in, mid [64]int16
		for i := range in {
			in[i] = coefs[64*b+i] * int16(quant[i])
		}
		for x := range 8 {
			idct1D(mid[x:], in[x:], 11)
		}
		in = transposed(&mid)
		for y := range 8 {
			idct1D(mid[y:], in[y:], 18)
		}
		out := dst[8*b:]
		for y := range 8 {
			for x := range 8 {
				out[y*stride+x] = byte(max(-128, min(mid[8*x+y], 127)) + 128)
			}
		}
	}
}

func transposed(m *[64]int16) (t [64]int16) {
	for i, v := range m {
		t[i%8*8+i/8] = v
	}
	return t
}

// idct1D transforms the column of eight values in[0], in[8], ... and scales the result down
// by shift bits, rounding.
func idct1D(out, in []int16, shift int) {
	sum := func(a, b int16) int32 { return int32(a + b) } // wraps
	i1, i2, i3 := int32(in[8]), int32(in[16]), int32(in[24])
	i5, i6, i7 := int32(in[40]), int32(in[48]), int32(in[56])

	e2 := i2*fix0541196100 + i6*(fix0541196100-fix1847759065)
	e3 := i2*(fix0541196100+fix0765366865) + i6*fix0541196100
	e0 := sum(in[0], in[32]) << 13
	e1 := sum(in[0], -in[32]) << 13
	even := [4]int32{e0 + e3, e1 + e2, e1 - e2, e0 - e3}

	z3, z4 := sum(in[56], in[24]), sum(in[40], in[8])
	y3 := z3*(fix1175875602-fix1961570560) + z4*fix1175875602
	y4 := z3*fix1175875602 + z4*(fix1175875602-fix0390180644)
	odd := [4]int32{
		i7*-fix0899976223 + i1*(fix1501321110-fix0899976223) + y4,
		i5*-fix2562915447 + i3*(fix3072711026-fix2562915447) + y3,
		i5*(fix2053119869-fix2562915447) + i3*-fix2562915447 + y4,
		i7*(fix0298631336-fix0899976223) + i1*-fix0899976223 + y3,
	}
	half := int32(1) << (shift - 1)
	for k := range 4 {
		out[8*k] = saturate((even[k] + odd[k] + half) >> shift)
		out[56-8*k] = saturate((even[k] - odd[k] + half) >> shift)
	}
}

func saturate(v int32) int16 { return int16(max(-1<<15, min(v, 1<<15-1))) }

// flatPair is idctPair for two blocks that have only a first coefficient.
func flatPair(dst []byte, stride int, coefs *[128]int16, quant int32) {
	a, b := flatSample(coefs[0], quant), flatSample(coefs[64], quant)
	for y := range 8 {
		row := dst[y*stride:][:16]
		binary.LittleEndian.PutUint64(row, a)
		binary.LittleEndian.PutUint64(row[8:], b)
	}
}

// flatSample returns the one sample of such a block, eight times.
func flatSample(coef int16, quant int32) uint64 {
	v := int32(int16(int32(coef) * quant))
	return uint64(clamp((v+4)>>3+128)) * 0x0101010101010101
}
