//go:build !purego

package kernel

// These choose kernels by the features of the CPU, for as many elements as are in the longer
// registers: a table's phase i is for elements 8i to 8i+7 of each 24, or for channel i.

type (
	exactTable  = [11][8]float32
	affineTable = [6][8]float32
)

// normF32 converts n >= 24 bytes in float32, rounded after each step.
func normF32(dst *float32, src *byte, n int, t *exactTable) {
	if useAVX512 && n >= 48 {
		normF32x16(dst, src, n, t)
		return
	}
	normF32x8(dst, src, n, t)
}

// affineF16 converts n >= 24 bytes by one multiplication and addition.
func affineF16(dst *uint16, src *byte, n int, t *affineTable) {
	if useAVX512 && n >= 48 {
		affineF16x16(dst, src, n, t)
		return
	}
	affineF16x8(dst, src, n, t)
}

// affineBF16 is affineF16 for bfloat16.
func affineBF16(dst *uint16, src *byte, n int, t *affineTable) {
	if useAVX512 && n >= 48 {
		affineBF16x16(dst, src, n, t)
		return
	}
	affineBF16x8(dst, src, n, t)
}

// planesF32 converts n >= 8 pixels in float32, rounded after each step.
func planesF32(r, g, b *float32, src *byte, n, step int, mask *[3][32]byte, t *exactTable) {
	if useAVX512 && n >= 16 {
		planesF32x16(r, g, b, src, n, step, wideOrders[step], t)
		return
	}
	planesF32x8(r, g, b, src, n, step, mask, t)
}

// affinePlanesF16 converts n >= 8 pixels by one multiplication and addition.
func affinePlanesF16(r, g, b *uint16, src *byte, n, step int, mask *[3][32]byte, t *affineTable) {
	if useAVX512 && n >= 16 {
		affinePlanesF16x16(r, g, b, src, n, step, wideOrders[step], t)
		return
	}
	affinePlanesF16x8(r, g, b, src, n, step, mask, t)
}

// affinePlanesBF16 is affinePlanesF16 for bfloat16.
func affinePlanesBF16(r, g, b *uint16, src *byte, n, step int, mask *[3][32]byte, t *affineTable) {
	if useAVX512 && n >= 16 {
		affinePlanesBF16x16(r, g, b, src, n, step, wideOrders[step], t)
		return
	}
	affinePlanesBF16x8(r, g, b, src, n, step, mask, t)
}

// wideOrders are where the bytes of each channel are in 16 pixels, each four times.
var wideOrders = [5]*[3][64]byte{3: newWideOrders(3), 4: newWideOrders(4)}

func newWideOrders(step int) *[3][64]byte {
	m := new([3][64]byte)
	for c := range m {
		for j := range m[c] {
			m[c][j] = byte(j/4*step + c)
		}
	}
	return m
}
