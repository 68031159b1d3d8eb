//go:build !(amd64 || arm64) || purego

package jpeg

// Without kernels the Fast functions do nothing, and the loops in Go do all the
// work.
func idctPairFast(_ []byte, _ int, _ *[128]int16, _ *[64]uint16) bool { return false }
func sumRowsFast(_ []uint16, _, _ []byte) int                         { return 0 }
func doubleColumnsFast(_ []byte, _ []uint16, _, _ uint16) int         { return 0 }
func yccToRGBXFast(_, _, _, _ []byte) int                             { return 0 }

func (*bitReader) unitsFast(_ []unitBlock, _ int) (_, _ bool) { return false, false }
