//go:build !purego

package kernel

import "unsafe"

// markFast marks whole words and returns how many.
func markFast(dst []uint64, text string, c byte) int {
	n := len(text) / 64
	if !useKernels || n == 0 {
		return 0
	}
	mark64(&dst[0], unsafe.StringData(text), n, uint64(c))
	return n
}

// mark64 does n > 0 words.
//
//go:noescape
func mark64(dst *uint64, p *byte, n int, c uint64)
