//go:build !purego

package kernel

// useKernels chooses the kernels in assembly, which run on every CPU that Go supports. Tests clear it to try the
// loops.
var useKernels = true

// Instructions names the vector instructions of the kernels in assembly.
func Instructions() string { return "NEON" }
