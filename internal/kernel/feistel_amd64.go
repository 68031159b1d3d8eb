//go:build !purego && !race

package kernel

import "golang.org/x/sys/cpu"

// useFeistel chooses the kernel in registers of AVX-512. Tests clear it.
var useFeistel = useAVX512 && cpu.X86.HasAVX512DQ

func feistelFast(dst []int, hi, lo, a, b uint64, keys *[FeistelRounds]uint64) int {
	n := len(dst) &^ (feistelLanes - 1)
	if !useFeistel || n == 0 {
		return 0
	}
	feistel512(&dst[0], n, hi, lo, a, b, keys)
	return n
}

func feistelAtFast(x []int, a, b uint64, keys *[FeistelRounds]uint64) int {
	n := len(x) &^ (feistelLanes - 1)
	if !useFeistel || n == 0 {
		return 0
	}
	feistelAt512(&x[0], n, a, b, keys)
	return n
}

// feistelAt512 does n > 0 positions, a multiple of feistelLanes, in place.
//
//go:noescape
func feistelAt512(x *int, n int, a, b uint64, keys *[FeistelRounds]uint64)

// feistel512 does n > 0 positions, a multiple of feistelLanes.
//
//go:noescape
func feistel512(dst *int, n int, hi, lo, a, b uint64, keys *[FeistelRounds]uint64)
