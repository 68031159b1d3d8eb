package blosc

import "github.com/penstock/penstock/internal/codec/stream"

// decompressor fills dst, whose length is known, from a stream.
type decompressor func(dst, src []byte) error

// decompressors are the codecs of the format, by their number in the flags. 2 is snappy, which no version of blosc
// since 2017 writes by default.
var decompressors = [8]decompressor{0: blosclz, 1: stream.LZ4, 3: stream.Zlib, 4: stream.Zstd}

var errLength = stream.ErrLength
