//go:build turbo && cgo

package turbo

// #cgo LDFLAGS: -ljpeg
// #include "turbo.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Version is that of the header this was built with.
var Version = C.GoString(C.pst_version())

// Space is the form in which rows are wanted.
type Space int

// The values of Space.
const (
	Gray Space = C.PST_GRAY
	RGBX Space = C.PST_RGBX
	CMYK Space = C.PST_CMYK // as stored, which is inverted in Adobe's files
)

// Rows says what the rows that Read returns are.
type Rows struct {
	First, Width int // columns of the image that they hold
	Step         int // bytes a pixel
}

// Decoder decodes one JPEG after the other. It serves one goroutine. What it holds is in
// C's memory: Close frees it, and so does the garbage collector if that is forgotten.
type Decoder struct {
	c       *C.pst_decoder
	rows    C.pst_rows // of the last Start
	cleanup runtime.Cleanup
}

// New returns a Decoder.
func New() (*Decoder, error) {
	c := C.pst_new()
	if c == nil {
		return nil, errors.New("libjpeg-turbo cannot start: no memory, or its library is not of its header's version")
	}
	d := &Decoder{c: c}
	d.cleanup = runtime.AddCleanup(d, func(c *C.pst_decoder) { C.pst_free(c) }, c)
	return d, nil
}

// Close frees the decoder. It must not be used afterwards.
func (d *Decoder) Close() {
	if d.c != nil {
		d.cleanup.Stop()
		C.pst_free(d.c)
		d.c = nil
	}
}

// Start begins to decode a file at row y, columns [x, x+w) and what the library adds to
// them. It copies the file.
func (d *Decoder) Start(file []byte, s Space, x, w, y int) (Rows, error) {
	r := &d.rows
	rc := C.pst_start(d.c, (*C.uchar)(unsafe.Pointer(unsafe.SliceData(file))), C.size_t(len(file)), C.int(s),
		C.uint(x), C.uint(w), C.uint(y), r)
	err := d.failed(rc)
	return Rows{int(r.first), int(r.width), int(r.step)}, err
}

// Read writes the next n rows to dst, stride bytes apart. It panics if dst is too short.
func (d *Decoder) Read(dst []byte, stride, n int) error {
	if stride <= 0 || n <= 0 || len(dst)/stride < n {
		panic("turbo: too little memory for the rows")
	}
	err := d.failed(C.pst_read(d.c, (*C.uchar)(unsafe.Pointer(&dst[0])), C.size_t(stride), C.uint(n)))
	runtime.KeepAlive(d)
	return err
}

func (d *Decoder) failed(rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("near row %d: %s", uint(C.pst_row(d.c)), C.GoString(C.pst_message(d.c)))
}
