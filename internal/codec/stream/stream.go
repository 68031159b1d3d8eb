// Package stream decompresses blocks whose size is known, in memory: LZ4 blocks, zstd frames, and streams of zlib,
// gzip and bzip2. The size of the destination bounds what the libraries may write, as the bytes are untrusted.
// Deflate has a decoder in this package, as decoders of streams take 1.4 to 2.4 times as long. The functions may be
// called from any goroutine.
package stream

import (
	"errors"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// ErrLength is the error of a stream with more or less data than the caller expects.
var ErrLength = errors.New("a stream has another length than its data")

// LZ4 fills dst from a block of LZ4.
func LZ4(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	return exact(n, len(dst), err)
}

var scratches = sync.Pool{New: func() any { return new([]byte) }}

// Scratch lends a buffer of n bytes until Return is called with it.
func Scratch(n int) *[]byte {
	b := scratches.Get().(*[]byte)
	*b = slices.Grow((*b)[:0], n)[:n]
	return b
}

// Return takes back a buffer that Scratch has lent.
func Return(b *[]byte) { scratches.Put(b) }

var (
	inflaters = sync.Pool{New: func() any { return new(Inflater) }}
	flates    = sync.Pool{New: func() any { return new(flate) }}
)

// Zlib fills dst from a stream of zlib, whose checksum it verifies.
func Zlib(dst, src []byte) error {
	f := inflaters.Get().(*Inflater)
	defer inflaters.Put(f)
	return f.Inflate(dst, src)
}

// ZlibUpTo decodes a stream of zlib to the beginning of dst, and returns that part.
func ZlibUpTo(dst, src []byte) ([]byte, error) {
	f := flates.Get().(*flate)
	defer flates.Put(f)
	n, err := f.zlib(dst, src)
	return dst[:n], err
}

func exact(n, want int, err error) error {
	if err == nil && n != want {
		return ErrLength
	}
	return err
}
