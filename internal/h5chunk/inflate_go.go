//go:build !libdeflate || !cgo

package h5chunk

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"

	"github.com/penstock/penstock/internal/h5meta"
)

// Backend names what inflates.
const Backend = "klauspost/compress"

// copyMapped: a page that a mapped file lost is a fault that Go code survives.
const copyMapped = false

// inflater inflates zlib streams. The zero value is ready for use.
type inflater struct {
	src  bytes.Reader
	z    io.ReadCloser
	tail [1]byte
}

// inflate fills dst from a zlib stream, whose checksum it verifies. What follows the stream
// is ignored, as in libhdf5.
func (f *inflater) inflate(dst, src []byte) error {
	f.src.Reset(src)
	if err := f.reset(); err != nil {
		return fmt.Errorf("%v: %w", err, h5meta.ErrCorrupt)
	}
	if n, err := io.ReadFull(f.z, dst); err != nil {
		return fmt.Errorf("after %d of %d bytes: %v: %w", n, len(dst), err, h5meta.ErrCorrupt)
	}
	// The checksum is compared where the stream ends.
	n, err := f.z.Read(f.tail[:])
	switch {
	case n > 0:
		return fmt.Errorf("more than the %d bytes of a chunk: %w", len(dst), h5meta.ErrCorrupt)
	case err != io.EOF:
		return fmt.Errorf("after the last byte: %v: %w", err, h5meta.ErrCorrupt)
	}
	return nil
}

func (f *inflater) reset() (err error) {
	if f.z == nil {
		f.z, err = zlib.NewReader(&f.src)
		return err
	}
	return f.z.(zlib.Resetter).Reset(&f.src, nil)
}
