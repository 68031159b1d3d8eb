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

// fill fills dst from a stream, and reads on up to its end, where the checksum is.
func fill(dst []byte, r io.Reader) error {
	n, err := io.ReadFull(r, dst)
	if err == nil {
		if _, err = io.ReadFull(r, make([]byte, 1)); err == nil {
			return ErrLength
		} else if err == io.EOF {
			err = nil
		}
	}
	return exact(n, len(dst), err)
}
