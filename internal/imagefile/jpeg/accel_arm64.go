//go:build !purego

package jpeg

// useKernels chooses the kernels in assembly. They use only what every arm64 CPU has that Go
// supports. Tests clear it to run the loops in Go.
var useKernels = true

// unitsFast leaves all units to the loop in Go: decoding Huffman codes is serial, and vectors do
// not help.
func (*bitReader) unitsFast(_ []unitBlock, _ int) (_, _ bool) { return false, false }
