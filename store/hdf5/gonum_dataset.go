//go:build cgo && !nolibhdf5

package hdf5

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/penstock/penstock/internal/hdf5/encode"
)

func free(s *C.char) { C.free(unsafe.Pointer(s)) }

// late reports whether create leaves out the bytes of the dataset, and allocate reserves
// them in a later session: large datasets begin at pages, small ones do not.
func late(o *encode.Object) bool { return o.Align > smallAlign }

// create makes the dataset in f, with its Data if that is not nil.
func create(f file, o *encode.Object) error {
	n, err := o.Bytes()
	if err != nil {
		return err
	}
	if o.Data != nil && int64(len(o.Data)) != n {
		return fmt.Errorf("%s: %d bytes for a dataset of %d", o.Path, len(o.Data), n)
	}
	t, err := openType(o.Element)
	if err != nil {
		return err
	}
	defer t.Close()
	name := C.CString(o.Path)
	defer free(name)
	dims := make([]C.hsize_t, max(1, len(o.Dims)))
	for i, dim := range o.Dims {
		dims[i] = C.hsize_t(dim)
	}
	lately := C.int(0)
	if late(o) || n == 0 {
		lately = 1
	}
	var chunks *C.h5x_chunks
	if o.Chunked != nil {
		chunks = chunksOf(o)
	}
	var e C.h5x_error
	id := C.h5x_create_dataset(C.hid_t(f.h.ID()), name, C.hid_t(t.ID()), C.int(len(o.Dims)), &dims[0], lately, chunks, &e)
	if id < 0 {
		return failed("create "+o.Path, &e)
	}
	defer C.h5x_close_dataset(id)
	if len(o.Data) > 0 && C.h5x_write(id, unsafe.Pointer(unsafe.SliceData(o.Data)), &e) < 0 {
		return failed("write "+o.Path, &e)
	}
	return nil
}

// chunksOf returns how the rows of the dataset are cut and filtered.
func chunksOf(o *encode.Object) *C.h5x_chunks {
	c := &C.h5x_chunks{level: C.uint(o.Chunked.Level)}
	if o.Chunked.Shuffle {
		c.shuffle = 1
	}
	for i, dim := range o.Dims {
		c.dims[i] = C.hsize_t(dim)
	}
	c.dims[0] = C.hsize_t(o.Chunked.Records)
	return c
}

// allocate reserves the bytes of a dataset in the file. create made the dataset without
// them, see late.
func allocate(f file, o *encode.Object) error {
	h, err := f.h.OpenDataset(o.Path)
	if err != nil {
		return gonumFailed("open " + o.Path)
	}
	defer h.Close()
	var e C.h5x_error
	if C.h5x_allocate(C.hid_t(h.ID()), &e) < 0 {
		return failed("allocate "+o.Path, &e)
	}
	return nil
}

// offset returns where the dataset's bytes start in the file.
func offset(f file, path string) (int64, error) {
	h, err := f.h.OpenDataset(path)
	if err != nil {
		return 0, gonumFailed("open " + path)
	}
	defer h.Close()
	at := C.h5x_offset(C.hid_t(h.ID()))
	if at == C.h5x_no_offset() || uint64(at) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%s: libhdf5 gave it no place in the file", path)
	}
	return int64(at), nil
}

// createGroup makes an empty group.
func createGroup(f file, path string) error {
	g, err := f.h.CreateGroup(path)
	if err != nil {
		return gonumFailed("create group " + path)
	}
	return g.Close()
}
