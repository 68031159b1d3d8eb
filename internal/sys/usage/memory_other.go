//go:build !linux && !darwin

package usage

// PeakMemory is not known here.
func PeakMemory() int64 { return 0 }
