//go:build !(amd64 || arm64) || purego

package kernel

func standardizeFast(_ []float64, _, _ float64) int { return 0 }
func scaleFast(_ []float64, _, _ float64) int       { return 0 }
func clipFast(_ []float64, _, _ float64) int        { return 0 }
func fromBytesFast(_ []float64, _ []byte) int       { return 0 }
func fromF32Fast(_ []float64, _ []byte) int         { return 0 }
func toF32Fast(_ []byte, _ []float64) int           { return 0 }
func roundF32Fast(_ []float64) int                  { return 0 }
