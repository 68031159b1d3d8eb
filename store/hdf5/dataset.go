//go:build cgo

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

// dataset describes a dataset: its path in the file, its type, and its dimensions, of which
// a scalar has none. The first one may be 0.
type dataset struct {
	path string
	elem element
	dims []int64
	late bool           // its bytes get their place by allocate, not by create
	pack *encode.Recipe // nil: contiguous
}

// bytes returns how many bytes the elements take, or an error where no file could hold them.
func (d dataset) bytes() (int64, error) {
	if len(d.dims) > C.H5S_MAX_RANK {
		return 0, fmt.Errorf("%s: %d dimensions; HDF5 has at most %d", d.path, len(d.dims), C.H5S_MAX_RANK)
	}
	n := int64(d.elem.size())
	for i, dim := range d.dims {
		if n < 0 || dim < 0 || i > 0 && dim == 0 || n > 0 && dim > math.MaxInt64/4/n || d.elem.size() <= 0 {
			return 0, fmt.Errorf("%s: shape %v of %d-byte elements is more than a file can hold", d.path, d.dims, d.elem.size())
		}
		n *= dim
	}
	return n, nil
}

// create makes the dataset in f, with data in it if that is not nil. data must be all of its
// bytes.
func (d dataset) create(f file, data []byte) error {
	n, err := d.bytes()
	if err != nil {
		return err
	}
	if data != nil && int64(len(data)) != n {
		return fmt.Errorf("%s: %d bytes for a dataset of %d", d.path, len(data), n)
	}
	t, err := d.elem.open()
	if err != nil {
		return err
	}
	defer t.Close()
	name := C.CString(d.path)
	defer free(name)
	dims := make([]C.hsize_t, max(1, len(d.dims)))
	for i, dim := range d.dims {
		dims[i] = C.hsize_t(dim)
	}
	late := C.int(0)
	if d.late || n == 0 {
		late = 1
	}
	var chunks *C.h5x_chunks
	if d.pack != nil {
		chunks = d.chunks()
	}
	var e C.h5x_error
	id := C.h5x_create_dataset(C.hid_t(f.h.ID()), name, C.hid_t(t.ID()), C.int(len(d.dims)), &dims[0], late, chunks, &e)
	if id < 0 {
		return failed("create "+d.path, &e)
	}
	defer C.h5x_close_dataset(id)
	if len(data) > 0 && C.h5x_write(id, unsafe.Pointer(unsafe.SliceData(data)), &e) < 0 {
		return failed("write "+d.path, &e)
	}
	return nil
}

// chunks returns how the rows of the dataset are cut and filtered.
func (d dataset) chunks() *C.h5x_chunks {
	c := &C.h5x_chunks{level: C.uint(d.pack.Level)}
	if d.pack.Shuffle {
		c.shuffle = 1
	}
	for i, dim := range d.dims {
		c.dims[i] = C.hsize_t(dim)
	}
	c.dims[0] = C.hsize_t(d.pack.Records)
	return c
}

// allocate gives a late dataset its place.
func (d dataset) allocate(f file) error {
	h, err := f.h.OpenDataset(d.path)
	if err != nil {
		return gonumFailed("open " + d.path)
	}
	defer h.Close()
	var e C.h5x_error
	if C.h5x_allocate(C.hid_t(h.ID()), &e) < 0 {
		return failed("allocate "+d.path, &e)
	}
	return nil
}

// offset returns where the dataset's bytes start in the file.
func (d dataset) offset(f file) (int64, error) {
	h, err := f.h.OpenDataset(d.path)
	if err != nil {
		return 0, gonumFailed("open " + d.path)
	}
	defer h.Close()
	at := C.h5x_offset(C.hid_t(h.ID()))
	if at == C.h5x_no_offset() || uint64(at) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%s: libhdf5 gave it no place in the file", d.path)
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
