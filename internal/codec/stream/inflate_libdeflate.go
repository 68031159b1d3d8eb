//go:build libdeflate && cgo

package stream

// #cgo pkg-config: libdeflate
// #include <libdeflate.h>
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Backend names the library that inflates: "Go" or "libdeflate".
const Backend = "libdeflate"

// Inflater inflates zlib streams. The zero value is ready for use, by one goroutine at a time.
type Inflater struct {
	c   *handle
	src []byte // a copy: C code cannot survive a page that a mapped file lost, so Go code reads it first
}

// handle owns a decompressor until it is collected.
type handle struct {
	d *C.struct_libdeflate_decompressor
}

func newHandle() *handle {
	h := &handle{C.libdeflate_alloc_decompressor()}
	if h.d != nil {
		runtime.AddCleanup(h, func(d *C.struct_libdeflate_decompressor) { C.libdeflate_free_decompressor(d) }, h.d)
	}
	return h
}

// Inflate fills dst from a zlib stream, whose checksum it verifies. Bytes after the stream are ignored, as in
// libhdf5.
func (f *Inflater) Inflate(dst, src []byte) error {
	if f.c == nil {
		f.c = newHandle()
	}
	if f.c.d == nil {
		return errors.New("libdeflate: out of memory")
	}
	f.src = append(f.src[:0], src...)
	in, out := unsafe.Pointer(unsafe.SliceData(f.src)), unsafe.Pointer(unsafe.SliceData(dst))
	rc := C.libdeflate_zlib_decompress(f.c.d, in, C.size_t(len(src)), out, C.size_t(len(dst)), nil)
	runtime.KeepAlive(f.c)
	switch rc {
	case C.LIBDEFLATE_SUCCESS:
		return nil
	case C.LIBDEFLATE_SHORT_OUTPUT:
		return fmt.Errorf("fewer than %d bytes", len(dst))
	case C.LIBDEFLATE_INSUFFICIENT_SPACE:
		return fmt.Errorf("more than %d bytes", len(dst))
	}
	return errors.New("invalid data or another checksum")
}
