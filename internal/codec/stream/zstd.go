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

// ZstdUpTo decodes frames of zstd to the beginning of dst, which it returns.
func ZstdUpTo(dst, src []byte) ([]byte, error) { return unzstd(dst, src) }

// ZstdSize returns how many bytes a frame of zstd says that it stands for. A frame need not say so.
func ZstdSize(src []byte) (int, error) {
	var h zstd.Header
	err := h.Decode(src)
	if err == nil && (!h.HasFCS || h.FrameContentSize > math.MaxInt32) {
		err = ErrLength
	}
	return int(h.FrameContentSize), err
}

// maxWindow is the longest that libzstd reads. Memory does not follow it: data in dst is its own window.
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

// overrun is how many bytes after the data the decoder may overwrite, if that is faster.
const overrun = 64

// unzstdGo is ZstdUpTo in Go.
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
