package chunk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Codec undoes one filter that other programs register or configure: szip and nbit of HDF5 itself, and bzip2, lz4, zstd,
// blosc, blosc2 and bitshuffle of its plugins. Stored bytes are untrusted: any bytes give an error or data that fits into
// dst. Methods may be called from any goroutine.
type Codec interface {
	// Decode writes what src was made from to dst, which has room for all that there can be and does not overlap
	// src, and returns it. Errors wrap meta.ErrCorrupt, or meta.ErrUnsupported where src uses something that is not
	// decoded here.
	Decode(dst, src []byte) ([]byte, error)

	// Expansion is how many bytes one stored byte can stand for; 1 means that the filter does not compress.
	Expansion() int
}

// decoder is a Codec of a function.
type decoder struct {
	decode    func(dst, src []byte) ([]byte, error)
	expansion int
}

func (d decoder) Decode(dst, src []byte) ([]byte, error) { return d.decode(dst, src) }
func (d decoder) Expansion() int                         { return d.expansion }

// The most bytes that one stored byte can stand for: in LZ4 a byte adds up to 255 to the length of a match; in bzip2
// and zstd a block of 900 kB or 128 KiB of one byte has about 40 bytes or 4.
const (
	mostLZ4   = 255
	mostZstd  = 128 << 10 / 4
	mostBzip2 = mostZstd
	mostSzip  = 64 * 32 * 8 // 64 blocks of 32 numbers in a few bits
	mostNbit  = 64          // a byte holds 8 numbers of 8 bytes, one bit each
)

var errParams = fmt.Errorf("impossible parameters: %w", meta.ErrCorrupt)

// corrupt words an error of a stream.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fmt.Errorf(format, args...), meta.ErrCorrupt)
}

// corruptIf words an error of a stream, if there is one.
func corruptIf(err error) error {
	if err == nil {
		return nil
	}
	return corrupt("%w", err)
}

var errCut = errors.New("the stream is cut")

// be32 reads a big-endian number of four bytes and returns what follows.
func be32(b []byte) (n uint32, rest []byte, err error) {
	if len(b) < 4 {
		return 0, nil, corrupt("%w", errCut)
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}
