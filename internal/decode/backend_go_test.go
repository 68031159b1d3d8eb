//go:build !turbo || !cgo

package decode

// What the pixels of a JPEG may differ from Pillow's by.
const (
	maxDifference     = 3
	maxMeanDifference = 0.05
)
