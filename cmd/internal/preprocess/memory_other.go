//go:build !linux && !darwin

package preprocess

// peakMemory is not known here.
func peakMemory() int64 { return 0 }
