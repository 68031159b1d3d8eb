//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// useKernels chooses the kernels in assembly. Tests clear it to try the loops.
var useKernels = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

// useAVX512 chooses the kernels that have a version with registers twice as long. Tests clear it
// to try the other versions.
var useAVX512 = useKernels && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI && cpu.X86.HasBMI2

// Instructions names the vector instructions of the kernels in assembly, "" if this CPU has not all that they need.
func Instructions() string {
	switch {
	case useAVX512:
		return "AVX-512"
	case useKernels:
		return "AVX2"
	}
	return ""
}
