//go:build !purego

package kernel

// useKernels chooses the kernels in assembly, which every processor has that Go runs on. Tests
// clear it to try the loops.
var useKernels = true
