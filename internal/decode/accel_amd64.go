//go:build !purego

package decode

//go:generate go run -C _asm . -pkg decode -out ../kernels_amd64.s -stubs ../kernels_amd64.go

import "golang.org/x/sys/cpu"

// useAVX2 chooses the kernels in assembly. Tests clear it to try the loops.
var useAVX2 = cpu.X86.HasAVX2

// The Fast functions do as many elements as they can and return how many that are: all or
// none. They trust their callers for the lengths of all slices but the first.

func idctPairFast(dst []byte, stride int, coefs *[128]int16, quant *[64]uint16) bool {
	if !useAVX2 {
		return false
	}
	_ = dst[7*stride+15]
	idctPairAVX2(&dst[0], stride, coefs, quant)
	return true
}

func sumRowsFast(dst []uint16, near, far []byte) int {
	if !useAVX2 || len(dst) < 16 {
		return 0
	}
	sumRowsAVX2(&dst[0], &near[0], &far[0], len(dst))
	return len(dst)
}

func doubleColumnsFast(dst []byte, s []uint16, even, odd uint16) int {
	n := len(dst) / 2
	if !useAVX2 || n < 16 {
		return 0
	}
	doubleColumnsAVX2(&dst[0], &s[0], n, even, odd)
	return n
}

func yccToRGBXFast(dst, y, cb, cr []byte) int {
	if !useAVX2 || len(y) < 16 {
		return 0
	}
	yccToRGBXAVX2(&dst[0], &y[0], &cb[0], &cr[0], len(y))
	return len(y)
}
