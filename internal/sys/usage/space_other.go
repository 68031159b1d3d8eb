//go:build !linux && !darwin

package usage

// FreeSpace is not known here.
func FreeSpace(string) (int64, bool) { return 0, false }
