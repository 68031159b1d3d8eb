//go:build !libdeflate || !cgo

package encode

import (
	"bytes"

	"github.com/klauspost/compress/zlib"
)

// Backend names the library that deflates.
const Backend = "klauspost/compress"

// deflater makes zlib streams with klauspost/compress, which needs no cgo. It is for one goroutine.
type deflater struct {
	z   *zlib.Writer
	out bytes.Buffer
}

// newDeflater returns a deflater of level 1 to 9.
func newDeflater(level int) (d *deflater, err error) {
	d = new(deflater)
	d.z, err = zlib.NewWriterLevel(&d.out, level)
	return d, err
}

// deflate returns b as a zlib stream, which is valid until the next call.
func (d *deflater) deflate(b []byte) ([]byte, error) {
	d.out.Reset()
	d.z.Reset(&d.out)
	if _, err := d.z.Write(b); err != nil {
		return nil, err
	}
	if err := d.z.Close(); err != nil {
		return nil, err
	}
	return d.out.Bytes(), nil
}
