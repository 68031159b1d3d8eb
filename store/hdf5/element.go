//go:build cgo

package hdf5

// #include "shim.h"
import "C"

import (
	"fmt"

	"gonum.org/v1/hdf5"

	"github.com/penstock/penstock/tensor"
)

// element is the type of one element on disk: text of that many bytes, or else a dtype.
type element struct {
	dtype tensor.DType
	text  int
}

func (e element) size() int {
	if e.text > 0 {
		return e.text
	}
	return e.dtype.Size()
}

// standard holds what gonum has a name for. BFloat16 is stored as its bits.
var standard = map[tensor.DType]*hdf5.Datatype{
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

// open returns the type, which the caller closes. Its size is what e says: with that, and
// the number of elements, the length of every buffer is known before it goes to C.
func (e element) open() (*hdf5.Datatype, error) {
	t, err := e.make()
	if err != nil {
		return nil, err
	}
	if t.Size() != uint(e.size()) {
		err = fmt.Errorf("libhdf5 gives type %v %d bytes, not %d", e.dtype, t.Size(), e.size())
		t.Close()
		return nil, err
	}
	return t, nil
}

func (e element) make() (*hdf5.Datatype, error) {
	var x C.h5x_error
	switch {
	case e.text > 0:
		return adopt(C.h5x_text(C.size_t(e.text), &x), &x)
	case e.dtype == tensor.Bool:
		return adopt(C.h5x_bool(&x), &x)
	case e.dtype == tensor.Float16:
		return adopt(C.h5x_float16(&x), &x)
	}
	s, ok := standard[e.dtype]
	if !ok {
		return nil, fmt.Errorf("no HDF5 type for %v", e.dtype)
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

// wrap calls a constructor of gonum that takes a C.hid_t. That type has no name outside
// gonum, but it can be inferred.
func wrap[ID ~int32 | ~int64, T any](construct func(ID) T, id int64) T {
	return construct(ID(id))
}
