package kernel

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// feistelOf is the loop of Feistel's comment.
func feistelOf(x, a, b uint64, keys *[FeistelRounds]uint64) int {
	half := func(x, y, key, m uint64) uint64 {
		z := y + key
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		high, _ := bits.Mul64(z^z>>31, m)
		return (x + high) % m
	}
	hi, lo := x/b, x%b
	for r := 0; r < FeistelRounds; r += 2 {
		hi = half(hi, lo, keys[r], a)
		lo = half(lo, hi, keys[r+1], b)
	}
	return int(hi*b + lo)
}

func TestFeistel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	var most int
	for _, sides := range [][2]uint64{{16, 16}, {16, 17}, {64, 66}, {256, 256}, {255, 257}, {31622, 31624},
		{math.MaxUint32, math.MaxUint32}, {1 << 31, 1<<31 + 1}} {
		a, b := sides[0], sides[1]
		for _, n := range append([]int{256, 1000}, lengths...) {
			keys := [FeistelRounds]uint64{rng.Uint64(), math.MaxUint64, 0, rng.Uint64(), rng.Uint64(), rng.Uint64(),
				rng.Uint64(), rng.Uint64()}
			for _, x := range []uint64{0, b - 1, b + 1, a*b - min(a*b, uint64(n)), rng.Uint64N(a * b)} {
				n := int(min(uint64(n), a*b-x))
				got := slices.Repeat([]int{-7}, n+1)
				done := Feistel(got[:n], x, a, b, &keys)
				most = max(most, done)
				for i := range done {
					if want := feistelOf(x+uint64(i), a, b, &keys); got[i] != want {
						t.Fatalf("%d x %d, position %d: %d, want %d", a, b, x+uint64(i), got[i], want)
					}
				}
				if done > n || done > 0 && n-done >= feistelLanes || slices.Max(got[done:]) != -7 {
					t.Fatalf("%d x %d: %d of %d positions", a, b, done, n)
				}
			}
		}
	}
	if most == 0 {
		t.Log("this build or CPU has no kernel for it: nothing is tested")
	}
	for _, sides := range [][2]uint64{{15, 100}, {20, 19}, {20, 1 << 32}} {
		if done := Feistel(make([]int, 64), 0, sides[0], sides[1], new([FeistelRounds]uint64)); done != 0 {
			t.Errorf("%d x %d: %d positions", sides[0], sides[1], done)
		}
	}
}

func TestFeistelAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, sides := range [][2]uint64{{16, 16}, {16, 17}, {64, 66}, {255, 257}, {31622, 31624}, {1 << 26, 1 << 26},
		{1<<26 - 1, 1<<26 - 1}} {
		a, b := sides[0], sides[1]
		keys := [FeistelRounds]uint64{rng.Uint64(), math.MaxUint64, 0, rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(),
			rng.Uint64()}
		for _, n := range append([]int{256, 1000}, lengths...) {
			x, got := make([]int, n), make([]int, n+1)
			for i := range x {
				x[i] = int(rng.Uint64N(a)*b + []uint64{0, b - 1, rng.Uint64N(b)}[i%3]) // also where a quotient changes
				if i%20 == 0 {
					x[i] = []int{0, int(a*b - 1)}[rng.IntN(2)]
				}
			}
			copy(got, x)
			got[n] = -7
			done := FeistelAt(got[:n], a, b, &keys)
			for i, at := range x {
				want := at
				if i < done {
					want = feistelOf(uint64(at), a, b, &keys)
				}
				if got[i] != want {
					t.Fatalf("%d x %d, position %d: %d, want %d", a, b, at, got[i], want)
				}
			}
			if got[n] != -7 || done > 0 && n-done >= feistelLanes {
				t.Fatalf("%d x %d: %d of %d positions", a, b, done, n)
			}
		}
	}
	for _, sides := range [][2]uint64{{15, 100}, {20, 19}, {1 << 26, 1<<26 + 1}} {
		if done := FeistelAt(make([]int, 64), sides[0], sides[1], new([FeistelRounds]uint64)); done != 0 {
			t.Errorf("%d x %d: %d positions", sides[0], sides[1], done)
		}
	}
}

func BenchmarkFeistel(b *testing.B) {
	dst := make([]int, 256)
	keys := [FeistelRounds]uint64{1, 2, 3, 4, 5, 6, 7, 8}
	for b.Loop() {
		Feistel(dst, 12345, 31622, 31624, &keys)
	}
}
