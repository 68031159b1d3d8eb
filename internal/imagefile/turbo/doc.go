// Package turbo drives libjpeg-turbo through its C interface, jpeglib.h, a few rows at a
// time: accurate integer transform, triangle upsampling, and of rows and columns that are
// not asked for only what the others need.
//
// It is empty unless built with cgo and the tag turbo.
package turbo
