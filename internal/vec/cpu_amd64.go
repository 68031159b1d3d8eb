//go:build !purego

package vec

import "golang.org/x/sys/cpu"

// useAVX2 chooses the kernels in assembly. Tests clear it to try the loops.
var useAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

// Accelerated names the instruction set that the kernels use, "" for plain Go.
func Accelerated() string {
	if useAVX2 {
		return "avx2"
	}
	return ""
}
