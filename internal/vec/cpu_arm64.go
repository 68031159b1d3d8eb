//go:build !purego

package vec

// instructions names the set that the kernels are written in.
const instructions = "neon"

// useKernels chooses the kernels in assembly, which every processor has that Go runs on. Tests
// clear it to try the loops.
var useKernels = true
