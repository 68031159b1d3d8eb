// Package kernel holds the loops that touch every byte: resizing, color and layout
// conversion, normalization and statistics of 8-bit images.
//
// Each kernel is a plain Go loop, which is its specification, and if the CPU allows, a faster
// version with the same results bit for bit. The build tag purego leaves the loops alone. A slice
// of a wrong length is a mistake of the caller and panics; nothing here returns an error, starts a
// goroutine or keeps its arguments.
package kernel

//go:generate go run -C _asm . -pkg kernel -out ../kernels_amd64.s -stubs ../kernels_amd64.go
//go:generate go run -C _neon . -pkg kernel -out ../kernels_arm64.s -stubs ../kernels_arm64.go
