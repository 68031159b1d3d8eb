//go:build !linux

package crash

// freeBytes knows of no folder in memory here.
func freeBytes(string) int64 { return 0 }
