// Package jpeg decodes JPEG files as they are scanned: up to the last row that is asked for, and of rows and columns
// that are not asked for only what others need. It has the pixels of libjpeg's accurate integer transform, of its
// triangle filter for chroma and of its conversion to RGB, bit for bit.
package jpeg

//go:generate go run -C _asm . -pkg jpeg -out ../kernels_amd64.s -stubs ../kernels_amd64.go
//go:generate go run -C ../../kernel/_neon . -pkg jpeg -out ../../imagefile/jpeg/kernels_arm64.s -stubs ../../imagefile/jpeg/kernels_arm64.go
