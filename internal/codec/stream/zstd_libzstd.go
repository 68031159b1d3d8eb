//go:build libzstd && cgo

package stream

// #cgo pkg-config: libzstd
// #include <zstd.h>
import "C"

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"unsafe"
)

// ZstdBackend names the library that decodes zstd: "Go" or "libzstd".
const ZstdBackend = "libzstd"

// zstdMagic is the number that begins a frame. libzstd may also know older frames, which begin with other numbers.
const zstdMagic = 0xfd2fb528

// zstdContext owns a decoder until it is collected.
type zstdContext struct {
	d   *C.ZSTD_DCtx
	src []byte // a copy: C code cannot survive a page that a mapped file lost, so Go code reads it first
}

var zstdContexts = sync.Pool{New: func() any {
	c := &zstdContext{d: C.ZSTD_createDCtx()}
	if c.d != nil {
		runtime.AddCleanup(c, func(d *C.ZSTD_DCtx) { C.ZSTD_freeDCtx(d) }, c.d)
	}
	return c
}}

// unzstd decodes a frame by libzstd. Other input, such as several frames, goes to the decoder in Go.
func unzstd(dst, src []byte) ([]byte, error) {
	c := zstdContexts.Get().(*zstdContext)
	defer zstdContexts.Put(c)
	c.src = append(c.src[:0], src...)
	in, size := unsafe.Pointer(unsafe.SliceData(c.src)), C.size_t(len(src))
	if c.d == nil || len(src) < 4 || binary.LittleEndian.Uint32(c.src) != zstdMagic ||
		C.ZSTD_findFrameCompressedSize(in, size) != size {
		return unzstdGo(dst, c.src)
	}
	n := C.ZSTD_decompressDCtx(c.d, unsafe.Pointer(unsafe.SliceData(dst)), C.size_t(len(dst)), in, size)
	if C.ZSTD_isError(n) != 0 {
		return nil, errors.New("libzstd: " + C.GoString(C.ZSTD_getErrorName(n)))
	}
	return dst[:n], nil
}
