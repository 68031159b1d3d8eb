//go:build libdeflate && cgo

package main

// #cgo pkg-config: libdeflate
// #include <libdeflate.h>
import "C"

import (
	"errors"
	"hash/crc32"
	"syscall"
	"unsafe"
)

// inflateReader inflates chunks of one record each by libdeflate, with a plain loop.
type inflateReader struct {
	c      *C.struct_libdeflate_decompressor
	file   []byte
	stored [][]byte
	size   int // bytes of a record
	buf    []byte
}

func openInflate(path string, batch int) (reader, error) {
	b, d, err := openFile(path)
	if err != nil {
		return nil, err
	}
	table, err := d.Chunks()
	if err != nil {
		return nil, err
	}
	r := &inflateReader{c: C.libdeflate_alloc_decompressor(), file: b, size: int(table.Bytes),
		buf: make([]byte, batch*int(table.Bytes))}
	for _, x := range table.Chunks {
		r.stored = append(r.stored, b[x.Offset:x.Offset+x.Size])
	}
	if r.c == nil {
		return nil, errors.New("libdeflate: out of memory")
	}
	return r, nil
}

func (r *inflateReader) inflate(dst []byte, i int) error {
	in, out := unsafe.Pointer(unsafe.SliceData(r.stored[i])), unsafe.Pointer(unsafe.SliceData(dst))
	if C.libdeflate_zlib_decompress(r.c, in, C.size_t(len(r.stored[i])), out, C.size_t(len(dst)),
		nil) != C.LIBDEFLATE_SUCCESS {
		return errors.New("libdeflate: corrupt")
	}
	return nil
}

func (r *inflateReader) read(order []int) error {
	for k, i := range order {
		at := k * r.size % len(r.buf)
		if err := r.inflate(r.buf[at:at+r.size], i); err != nil {
			return err
		}
	}
	return nil
}

func (r *inflateReader) sum() (int64, error) {
	h := crc32.NewIEEE()
	for i := range r.stored {
		if err := r.inflate(r.buf[:r.size], i); err != nil {
			return 0, err
		}
		h.Write(r.buf[:r.size])
	}
	return int64(h.Sum32()), nil
}

func (r *inflateReader) close() {
	C.libdeflate_free_decompressor(r.c)
	_ = syscall.Munmap(r.file)
}
