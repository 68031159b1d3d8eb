//go:build !amd64 || purego

package kernel

// piecesF32Fast leaves pieces to SumF32 and SquaresF32.
func piecesF32Fast(_, _ []float64, _ []float32) (low, high float32, ok bool) { return 0, 0, false }
