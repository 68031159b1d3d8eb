//go:build !(amd64 || arm64) || purego

package vec

// Accelerated names the instruction set that the kernels use, "" for plain Go.
func Accelerated() string { return "" }
