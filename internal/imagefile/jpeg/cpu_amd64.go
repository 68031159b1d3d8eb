//go:build !purego

package jpeg

import "golang.org/x/sys/cpu"

// useKernels chooses the kernels in assembly, which use AVX2, and BMI2 for shifts that leave the
// flags alone. Tests clear it to run the loops in Go.
var useKernels = cpu.X86.HasAVX2 && cpu.X86.HasBMI2
