package stream

import (
	"bytes"
	"compress/bzip2"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var gzipReaders sync.Pool

// Gzip fills dst from a stream of gzip, whose checksum it verifies.
func Gzip(dst, src []byte) error {
	r, _ := gzipReaders.Get().(*gzip.Reader)
	var err error
	if in := bytes.NewReader(src); r == nil {
		r, err = gzip.NewReader(in)
	} else {
		err = r.Reset(in)
	}
	if err != nil {
		return err
	}
	defer gzipReaders.Put(r)
	return fill(dst, r)
}

// Bzip2 fills dst from a stream of bzip2, whose checksum it verifies.
func Bzip2(dst, src []byte) error { return fill(dst, bzip2.NewReader(bytes.NewReader(src))) }

// Bzip2UpTo decodes a stream of bzip2 to the beginning of dst, which it returns.
func Bzip2UpTo(dst, src []byte) ([]byte, error) {
	n, err := fillUpTo(dst, bzip2.NewReader(bytes.NewReader(src)))
	return dst[:n], err
}

// fill fills dst from a stream.
func fill(dst []byte, r io.Reader) error {
	n, err := fillUpTo(dst, r)
	return exact(n, len(dst), err)
}

// fillUpTo reads a stream of at most len(dst) bytes up to its end, where the checksum is, and returns how many they are.
func fillUpTo(dst []byte, r io.Reader) (n int, err error) {
	for err == nil && n < len(dst) {
		var k int
		k, err = r.Read(dst[n:])
		n += k
	}
	if err == nil {
		if _, err = io.ReadFull(r, make([]byte, 1)); err == nil {
			err = ErrLength
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
