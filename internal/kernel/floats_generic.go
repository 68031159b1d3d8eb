//go:build !(amd64 || arm64) || purego

package kernel

import "github.com/penstock/penstock/tensor"

func sumF32Fast(_ *lanes, _ []float32, _, _ *float32) int { return 0 }
func squaresF32Fast(_ *lanes, _ []float32, _ float64) int { return 0 }
func widenF16Fast(_ []float32, _ []tensor.Half) int       { return 0 }
func widenBF16Fast(_ []float32, _ []tensor.Brain) int     { return 0 }
