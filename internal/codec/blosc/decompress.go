package blosc

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// A decompressor fills dst, whose length it knows, from a stream.
type decompressor func(dst, src []byte) error

// decompressors are those of the format, by the number in the flags. 2 is snappy, which no version of blosc
// since 2017 writes by default.
var decompressors = [8]decompressor{0: blosclz, 1: unLZ4, 3: inflate, 4: unZstd}

var errLength = errors.New("a stream has another length than its data")

func unLZ4(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	return exact(n, len(dst), err)
}

// zstdReader decodes frames that are as long as their destination, in any number of goroutines.
var zstdReader = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // these options are right
	}
	return d
})

func unZstd(dst, src []byte) error {
	b, err := zstdReader().DecodeAll(src, dst[:0:len(dst)])
	return exact(len(b), len(dst), err)
}

var zlibReaders sync.Pool

func inflate(dst, src []byte) error {
	r, _ := zlibReaders.Get().(io.ReadCloser)
	var err error
	if in := bytes.NewReader(src); r == nil {
		r, err = zlib.NewReader(in)
	} else {
		err = r.(zlib.Resetter).Reset(in, nil)
	}
	if err != nil {
		return err
	}
	defer zlibReaders.Put(r)
	n, err := io.ReadFull(r, dst)
	if err == nil {
		if _, err = io.ReadFull(r, make([]byte, 1)); err == nil { // reads the checksum, too
			return errLength
		} else if err == io.EOF {
			err = nil
		}
	}
	return exact(n, len(dst), err)
}

func exact(n, want int, err error) error {
	if err == nil && n != want {
		return errLength
	}
	return err
}
