//go:build !linux && !darwin

package usage

// Memory is not known here.
func Memory() int64 { return 0 }

// PeakMemory is not known here.
func PeakMemory() int64 { return 0 }
