package stream

import (
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Zstd fills dst from frames of zstd.
func Zstd(dst, src []byte) error {
	b, err := ZstdUpTo(dst, src)
	return exact(len(b), len(dst), err)
}

// ZstdUpTo decodes frames of zstd to the beginning of dst, and returns that part.
func ZstdUpTo(dst, src []byte) ([]byte, error) { return unzstd(dst, src) }

// ZstdSize returns how many bytes of data a frame of zstd claims to have. A frame need not say so, which is an error.
func ZstdSize(src []byte) (int, error) {
	var h zstd.Header
	err := h.Decode(src)
	if err == nil && (!h.HasFCS || h.FrameContentSize > math.MaxInt32) {
		err = ErrLength
	}
	return int(h.FrameContentSize), err
}

// maxWindow is the longest window that libzstd accepts. It does not cost memory here: data in dst is its own window.
const maxWindow = 1<<31 + 7<<28

// zstdReader decodes frames that are at most as long as their destination, in any number of goroutines.
var zstdReader = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // these options are right
	}
	return d
})

// overrun is how many bytes after the data the decoder may overwrite, where that is faster than checking.
const overrun = 64

// unzstdGo is ZstdUpTo by the decoder in Go. It decodes into scratch memory, which has room for the overrun.
func unzstdGo(dst, src []byte) ([]byte, error) {
	scratch := Scratch(len(dst) + overrun)
	defer Return(scratch)
	b, err := zstdReader().DecodeAll(src, (*scratch)[:0:len(dst)+overrun])
	if err == nil && len(b) > len(dst) {
		err = ErrLength
	}
	if err != nil {
		return nil, err
	}
	return dst[:copy(dst, b)], nil
}
