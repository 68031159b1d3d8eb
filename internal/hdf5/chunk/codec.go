package chunk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Codec undoes one of the filters szip and nbit of HDF5 itself, and bzip2, lz4, zstd, blosc, blosc2 and bitshuffle of
// its plugins. Stored bytes are untrusted: any bytes give an error, or data that fits into dst. Methods may be called
// from any goroutine.
type Codec interface {
	// Decode decodes src into dst and returns the decoded part of dst. dst has room for the largest possible data and
	// does not overlap src. Errors wrap meta.ErrCorrupt, or meta.ErrUnsupported if src uses a feature that is not
	// decoded here.
	Decode(dst, src []byte) ([]byte, error)

	// Expansion returns the most bytes that one stored byte can stand for; 1 means that the filter does not compress.
	// By this number a chunk that claims too large a size is refused before memory is allocated.
	Expansion() int
}

// decoder makes a Codec of a function.
type decoder struct {
	decode    func(dst, src []byte) ([]byte, error)
	expansion int
}

func (d decoder) Decode(dst, src []byte) ([]byte, error) { return d.decode(dst, src) }
func (d decoder) Expansion() int                         { return d.expansion }

// The largest number of bytes that a stored byte can stand for. In LZ4 a byte adds up to 255 to the length of a match.
// A block of equal bytes takes about 40 bytes for 900 kB in bzip2, and about 4 bytes for 128 KiB in zstd.
const (
	mostLZ4   = 255
	mostZstd  = 128 << 10 / 4
	mostBzip2 = mostZstd
	mostSzip  = 64 * 32 * 8 // 64 blocks of 32 numbers in a few bits
	mostNbit  = 64          // a byte holds 8 numbers of 8 bytes, one bit each
)

var errParams = fmt.Errorf("impossible parameters: %w", meta.ErrCorrupt)

// corrupt returns an error of a damaged stream.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fmt.Errorf(format, args...), meta.ErrCorrupt)
}

// corruptIf marks an error of a stream as damage of the file; nil stays nil.
func corruptIf(err error) error {
	if err == nil {
		return nil
	}
	return corrupt("%w", err)
}

var errCut = errors.New("the stream is cut")

// be32 reads a big-endian number of four bytes and returns the bytes after it.
func be32(b []byte) (n uint32, rest []byte, err error) {
	if len(b) < 4 {
		return 0, nil, corrupt("%w", errCut)
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}
