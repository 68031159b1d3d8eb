//go:build !(amd64 || arm64) || purego

package kernel

import "github.com/penstock/penstock/tensor"

type fastNorm struct{}

func (*fastNorm) init(_ *Norm, _ tensor.DType, _ bool, _, _ []float32) {}

func (n *Norm) f32Fast(_ []float32, _ []byte, _ int) int             { return 0 }
func (n *Norm) u16Fast(_ []uint16, _ []byte, _ int) int              { return 0 }
func (n *Norm) pixelsF32Fast(_ []float32, _ []byte, _ int) int       { return 0 }
func (n *Norm) pixelsU16Fast(_ []uint16, _ []byte, _ int) int        { return 0 }
func (n *Norm) planesF32Fast(_, _, _ []float32, _ []byte, _ int) int { return 0 }
func (n *Norm) planesU16Fast(_, _, _ []uint16, _ []byte, _ int) int  { return 0 }
