//go:build cgo && !nolibhdf5

package hdf5

// #include "shim.h"
import "C"

import (
	"fmt"

	"gonum.org/v1/hdf5"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/tensor"
)

// named has the predefined types of HDF5 that package gonum/hdf5 has a name for. A BFloat16 is stored as its bits, a
// uint16.
var named = map[tensor.DType]*hdf5.Datatype{
	tensor.Uint8:    hdf5.T_STD_U8LE,
	tensor.Int8:     hdf5.T_STD_I8LE,
	tensor.Uint16:   hdf5.T_STD_U16LE,
	tensor.Int16:    hdf5.T_STD_I16LE,
	tensor.Uint32:   hdf5.T_STD_U32LE,
	tensor.Int32:    hdf5.T_STD_I32LE,
	tensor.Uint64:   hdf5.T_STD_U64LE,
	tensor.Int64:    hdf5.T_STD_I64LE,
	tensor.BFloat16: hdf5.T_STD_U16LE,
	tensor.Float32:  hdf5.T_IEEE_F32LE,
	tensor.Float64:  hdf5.T_IEEE_F64LE,
}

// openType returns the type of an element, which the caller closes. Its size is compared with e's: the length of every
// buffer that goes to C follows from that size, and C would read or write past a shorter one.
func openType(e encode.Element) (*hdf5.Datatype, error) {
	t, err := makeType(e)
	if err != nil {
		return nil, err
	}
	if t.Size() != uint(e.Size()) {
		err = fmt.Errorf("libhdf5 gives type %v %d bytes, not %d", e.DType, t.Size(), e.Size())
		t.Close()
		return nil, err
	}
	return t, nil
}

func makeType(e encode.Element) (*hdf5.Datatype, error) {
	var x C.h5x_error
	switch {
	case e.Text > 0:
		return adopt(C.h5x_text(C.size_t(e.Text), &x), &x)
	case e.DType == tensor.Bool:
		return adopt(C.h5x_bool(&x), &x)
	case e.DType == tensor.Float16:
		return adopt(C.h5x_float16(&x), &x)
	}
	s, ok := named[e.DType]
	if !ok {
		return nil, fmt.Errorf("no HDF5 type for %v", e.DType)
	}
	t, err := s.Copy()
	if err != nil {
		return nil, gonumFailed("copy type")
	}
	return t, nil
}

func adopt(id C.hid_t, x *C.h5x_error) (*hdf5.Datatype, error) {
	if id < 0 {
		return nil, failed("make type", x)
	}
	return wrap(hdf5.NewDatatype, int64(id)), nil
}

// wrap calls a constructor of gonum that takes a C.hid_t. That type has no name outside of gonum, so it is inferred.
func wrap[ID ~int32 | ~int64, T any](construct func(ID) T, id int64) T {
	return construct(ID(id))
}
