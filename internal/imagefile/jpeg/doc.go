// Package jpeg decodes JPEG files (ITU-T T.81) strip by strip, and stops after the last row that is
// asked for. Of the rows and columns outside the rectangle it makes only those that the filters for
// the rectangle need. The pixels are libjpeg-turbo's, bit for bit: its accurate integer transform
// (JDCT_ISLOW), its triangle filter for chroma and its conversion to RGB. So an image read here has
// the pixels that Pillow gives, which uses that library.
//
// Source is the type that callers use. Open reads the markers up to the first scan (header), checks
// that the file is whole before any memory is taken for it, and hands it to a decoder. Scan then
// works on strips of eight rows:
//
//	bytes -> bitReader -> huffTable -> coefficients -> inverse transform -> plane -> upsampled rows -> RGBX or gray
//
// A plane keeps only the last few rows of units of one component. An exception are files whose
// coefficients or components come in several scans, progressive ones above all: Open reads all of
// their coefficients, since no pixel is known before the last scan.
//
// The inner loops exist twice: in Go, as the definition, and in assembly (kernels_*.s), which must
// give the same bytes. The build tag purego leaves the assembly out.
//
// A Source keeps its buffers from file to file. It is for one goroutine at a time.
package jpeg

//go:generate go run -C _asm . -pkg jpeg -out ../kernels_amd64.s -stubs ../kernels_amd64.go
//go:generate go run -C ../../kernel/_neon . -pkg jpeg -out ../../imagefile/jpeg/kernels_arm64.s -stubs ../../imagefile/jpeg/kernels_arm64.go
