package jpeg

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/guardpage"
)

var kernelLengths = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097}

// guarded returns n values that end where memory that faults begins.
func guarded[T uint8 | uint16 | int16](t testing.TB, n int) []T {
	t.Helper()
	return guardpage.Slices[T](t, n)[0]
}

func randomBytes(t testing.TB, rng *rand.Rand, n int) []byte {
	b := guarded[byte](t, n)
	for i := range b {
		b[i] = byte(rng.UintN(256))
	}
	return b
}

// same runs a kernel with and without assembly, each into memory of its own.
func same[T uint8 | uint16](t *testing.T, name string, n int, kernel func(dst []T)) {
	t.Helper()
	fast, slow := guarded[T](t, n), guarded[T](t, n)
	kernel(fast)
	loopsAlone(t, func() { kernel(slow) })
	if !slices.Equal(fast, slow) {
		t.Errorf("%s of %d: assembly and loop differ", name, n)
	}
}

func TestRowKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range kernelLengths {
		a, b, c := randomBytes(t, rng, n), randomBytes(t, rng, n), randomBytes(t, rng, n)
		same(t, "yccToRGBX", 4*n, func(dst []byte) { yccToRGBX(dst, a, b, c) })
		same(t, "sumRows", n, func(dst []uint16) { sumRows(dst, a, b) })
		sums := guarded[uint16](t, n+2)
		for i := range sums {
			sums[i] = uint16(rng.UintN(4*255 + 1))
		}
		same(t, "doubleColumns", 2*n, func(dst []byte) { doubleColumns(dst, sums, 8, 7) })
		same(t, "doubleColumns", 2*n, func(dst []byte) { doubleColumns(dst, sums, 4, 8) })
	}
}

// Every value that the conversion can meet: all pairs of chroma at a few lumas.
func TestYCCOfAllChroma(t *testing.T) {
	for _, luma := range []byte{0, 1, 127, 128, 254, 255} {
		y, cb, cr := make([]byte, 256), make([]byte, 256), make([]byte, 256)
		for b := range 256 {
			for r := range 256 {
				y[r], cb[r], cr[r] = luma, byte(b), byte(r)
			}
			same(t, "yccToRGBX", 4*256, func(dst []byte) { yccToRGBX(dst, y, cb, cr) })
		}
	}
}

// The transform of assembly and loop agree on all 16-bit coefficients, sensible or not.
func TestTransformKernel(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 2000 {
		coefs, quant := (*[128]int16)(guarded[int16](t, 128)), (*[64]uint16)(guarded[uint16](t, 64))
		for i := range quant {
			quant[i] = uint16(1 + rng.UintN(255))
		}
		for range rng.IntN(64) {
			v := rng.IntN(1<<16) - 1<<15
			coefs[rng.IntN(128)] = int16(v >> rng.IntN(16))
		}
		stride := 16 + 16*(round%3)
		same(t, "idctPair", 7*stride+16, func(dst []byte) { idctPair(dst, stride, coefs, quant) })
	}
}

// flatPair equals idctPair for blocks of one coefficient.
func TestFlatBlocks(t *testing.T) {
	var quant [64]uint16
	for _, q := range []uint16{1, 2, 3, 16, 99, 255} {
		quant[0] = q
		for dc := -2100; dc <= 2100; dc++ {
			if v := dc * int(q); v < -1<<15 || v >= 1<<15 {
				continue
			}
			var coefs [128]int16
			coefs[0], coefs[64] = int16(dc), int16(-dc)
			var flat, full [128]byte
			flatPair(flat[:], 16, &coefs, int32(q))
			idctPair(full[:], 16, &coefs, &quant)
			if flat != full {
				t.Fatalf("coefficient %d, quantiser %d: %d, want %d", dc, q, flat[:9], full[:9])
			}
		}
	}
}

// libjpeg's integers stay within half a unit of the transform by its definition (T.81
// A.3.3).
func TestTransformIsTheDCT(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	quant := [64]uint16{}
	for i := range quant {
		quant[i] = 1
	}
	for range 200 {
		var coefs [128]int16
		for i := range coefs {
			coefs[i] = int16((rng.IntN(400) - 200) / (1 + i%64%8 + i%64/8))
		}
		var got [128]byte
		idctPair(got[:], 16, &coefs, &quant)
		for b := range 2 {
			want := definition((*[64]int16)(coefs[64*b:]))
			for i, w := range want {
				g := float64(got[i/8*16+8*b+i%8])
				if w = max(0, min(w, 255)); g-w > 0.6 || w-g > 0.6 {
					t.Fatalf("sample %d: %v, want %v", i, g, w)
				}
			}
		}
	}
}
