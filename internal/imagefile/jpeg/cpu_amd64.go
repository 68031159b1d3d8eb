//go:build !purego

package jpeg

import "golang.org/x/sys/cpu"

// useKernels chooses the kernels in assembly. Tests clear it to try the loops.
var useKernels = cpu.X86.HasAVX2 && cpu.X86.HasBMI2
