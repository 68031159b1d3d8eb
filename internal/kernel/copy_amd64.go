//go:build !purego && !race

package kernel

import "golang.org/x/sys/cpu"

// useMove says that REP MOVSB is fast at any alignment. AMD's Zen 3 and 4 have ERMS too, but
// are up to 20 times slower by it where the source is aligned and the destination is not
// (glibc, bug 30994). AVX-VNNI came with Zen 5, and with Intel's CPUs of 2021.
var useMove = cpu.X86.HasERMS && cpu.X86.HasAVXVNNI

// move copies src, which is not empty, or reports that copy is the better way.
func move(dst, src []byte) bool {
	if useMove {
		moveUp(&dst[0], &src[0], len(src))
	}
	return useMove
}

// moveUp copies n > 0 bytes, from the first to the last.
//
//go:noescape
func moveUp(dst, src *byte, n int)
