// Package stream decompresses blocks whose size is known, in memory: LZ4 blocks, zstd frames and zlib streams. It
// bounds the libraries that do so by the size of the destination, as the bytes are untrusted. The functions may be
// called from any goroutine.
package stream

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/pierrec/lz4/v4"
)

// ErrLength is the error of streams of more or less data than there can be.
var ErrLength = errors.New("a stream has another length than its data")

// LZ4 fills dst from a block of LZ4.
func LZ4(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	return exact(n, len(dst), err)
}

var scratches = sync.Pool{New: func() any { return new([]byte) }}

// Scratch lends n bytes until Return is called with them.
func Scratch(n int) *[]byte {
	b := scratches.Get().(*[]byte)
	*b = slices.Grow((*b)[:0], n)[:n]
	return b
}

// Return takes back what Scratch has lent.
func Return(b *[]byte) { scratches.Put(b) }

var zlibReaders sync.Pool

// Zlib fills dst from a stream of zlib, whose checksum it verifies.
func Zlib(dst, src []byte) error {
	b, err := ZlibUpTo(dst, src)
	return exact(len(b), len(dst), err)
}

// ZlibUpTo decodes a stream of zlib to the beginning of dst, which it returns.
func ZlibUpTo(dst, src []byte) ([]byte, error) {
	r, _ := zlibReaders.Get().(io.ReadCloser)
	var err error
	if in := bytes.NewReader(src); r == nil {
		r, err = zlib.NewReader(in)
	} else {
		err = r.(zlib.Resetter).Reset(in, nil)
	}
	if err != nil {
		return nil, err
	}
	defer zlibReaders.Put(r)
	n, err := fillUpTo(dst, r)
	return dst[:n], err
}

func exact(n, want int, err error) error {
	if err == nil && n != want {
		return ErrLength
	}
	return err
}
