//go:build !purego

package jpeg

// useKernels chooses the kernels in assembly, which run on every CPU that Go supports. Tests clear it to try the
// loops.
var useKernels = true

// unitsFast leaves all to the loop: there is nothing in it for vectors.
func (*bitReader) unitsFast(_ []unitBlock, _ int) (_, _ bool) { return false, false }
