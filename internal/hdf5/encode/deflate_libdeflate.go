//go:build libdeflate && cgo

package encode

// #cgo pkg-config: libdeflate
// #include <libdeflate.h>
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// Backend names the library that deflates.
const Backend = "libdeflate"

// deflater makes zlib streams with libdeflate. It is for one goroutine.
type deflater struct {
	c   *C.struct_libdeflate_compressor
	out []byte
}

// errMemory says that libdeflate got no memory. deflate itself cannot lack room, as its buffer has
// the size that libdeflate names as the bound.
var errMemory = errors.New("libdeflate: out of memory")

// newDeflater returns a deflater of level 1 to 9. Its memory, which C has allocated, is freed once
// nothing refers to the deflater any more.
func newDeflater(level int) (*deflater, error) {
	d := &deflater{c: C.libdeflate_alloc_compressor(C.int(level))}
	if d.c == nil {
		return nil, errMemory
	}
	runtime.AddCleanup(d, func(c *C.struct_libdeflate_compressor) { C.libdeflate_free_compressor(c) }, d.c)
	return d, nil
}

// deflate returns b as a zlib stream, which is valid until the next call.
func (d *deflater) deflate(b []byte) ([]byte, error) {
	d.out = grow(d.out, int(C.libdeflate_zlib_compress_bound(d.c, C.size_t(len(b)))))
	in, out := unsafe.Pointer(unsafe.SliceData(b)), unsafe.Pointer(unsafe.SliceData(d.out))
	n := C.libdeflate_zlib_compress(d.c, in, C.size_t(len(b)), out, C.size_t(len(d.out)))
	runtime.KeepAlive(d) // its cleanup must not free c before C has returned
	if n == 0 {
		return nil, errMemory
	}
	return d.out[:n], nil
}
