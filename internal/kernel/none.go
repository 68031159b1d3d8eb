//go:build !(amd64 || arm64) || purego

package kernel

import "github.com/penstock/penstock/tensor"

// Without kernels, all is left to the loops in Go.

func standardizeFast(_ []float64, _, _ float64) int { return 0 }
func scaleFast(_ []float64, _, _ float64) int       { return 0 }
func clipFast(_ []float64, _, _ float64) int        { return 0 }
func fromBytesFast(_ []float64, _ []byte) int       { return 0 }
func fromF32Fast(_ []float64, _ []byte) int         { return 0 }
func toF32Fast(_ []byte, _ []float64) int           { return 0 }
func roundF32Fast(_ []float64) int                  { return 0 }

func sumF32Fast(_ *lanes, _ []float32, _, _ *float32) int { return 0 }
func squaresF32Fast(_ *lanes, _ []float32, _ float64) int { return 0 }
func widenF16Fast(_ []float32, _ []tensor.Half) int       { return 0 }
func widenBF16Fast(_ []float32, _ []tensor.Brain) int     { return 0 }

func planesFast(_, _, _, _ []byte, _ int) int      { return 0 }
func interleaveFast(_, _, _, _ []byte) int         { return 0 }
func packFast(_, _ []byte, _ int) int              { return 0 }
func reverseFast(_, _ []byte) int                  { return 0 }
func reverseRowsFast(_, _ []byte, _, _, _ int) int { return 0 }
func reverse3Fast(_, _ []byte, _ int) int          { return 0 }
func grayFast(_, _ []byte, _ int) int              { return 0 }

func momentsFast(_ []byte, low, high byte) (done int, sum, squares uint64, least, most byte) {
	return 0, 0, 0, low, high
}

type fastNorm struct{}

func (*fastNorm) init(_ *Norm, _ tensor.DType, _ bool, _, _ []float32) {}

func (n *Norm) f32Fast(_ []float32, _ []byte, _ int) int             { return 0 }
func (n *Norm) u16Fast(_ []uint16, _ []byte, _ int) int              { return 0 }
func (n *Norm) pixelsF32Fast(_ []float32, _ []byte, _ int) int       { return 0 }
func (n *Norm) pixelsU16Fast(_ []uint16, _ []byte, _ int) int        { return 0 }
func (n *Norm) planesF32Fast(_, _, _ []float32, _ []byte, _ int) int { return 0 }
func (n *Norm) planesU16Fast(_, _, _ []uint16, _ []byte, _ int) int  { return 0 }

func prefetch([]byte) {}

// packed is empty where no kernel needs another form of the weights.
type packed struct{}

func (*packed) reset() {}

func (w *Weights) rowsFast(_ []byte, _ int, _ []byte, _, _, _, _, _ int) int { return 0 }

func (w *Weights) columnFast(_, _ []byte, _, _ int) int { return 0 }

// Instructions names the vector instructions of the kernels in assembly, of which this build has no
// kernel.
func Instructions() string { return "" }
