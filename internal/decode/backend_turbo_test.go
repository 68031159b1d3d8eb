//go:build turbo && cgo

package decode

// What the pixels of a JPEG may differ from Pillow's by: nothing.
const (
	maxDifference     = 0
	maxMeanDifference = 0.0
)
