//go:build cgo

package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/hdf5"

	"github.com/penstock/penstock/tensor"
)

// attribute is a small named value of an object: a scalar, or a list.
type attribute struct {
	name  string
	elem  element
	count int // elements of a list; 0 is a scalar
	data  []byte
}

// fits reports whether an object header can hold it: a message there has at most 64 KiB.
func (a attribute) fits() bool { return len(a.data) <= 60000 }

// attributed is what an attribute can be given to; gonum has it on groups and datasets.
type attributed interface {
	CreateAttribute(name string, dtype *hdf5.Datatype, space *hdf5.Dataspace) (*hdf5.Attribute, error)
}

func (a attribute) write(to attributed) (err error) {
	if len(a.data) == 0 || len(a.data) != max(1, a.count)*a.elem.size() {
		return fmt.Errorf("attribute %s: %d bytes for %d elements of %d", a.name, len(a.data), a.count, a.elem.size())
	}
	t, err := a.elem.open()
	if err != nil {
		return err
	}
	defer t.Close()
	space, err := a.space()
	if err != nil {
		return gonumFailed("make dataspace")
	}
	defer space.Close()
	h, err := to.CreateAttribute(a.name, t, space)
	if err != nil {
		return gonumFailed("create attribute " + a.name)
	}
	if err := h.Write(&a.data[0], t); err != nil {
		return errors.Join(gonumFailed("write attribute "+a.name), h.Close())
	}
	return h.Close()
}

func (a attribute) space() (*hdf5.Dataspace, error) {
	if a.count == 0 {
		return hdf5.CreateDataspace(hdf5.S_SCALAR)
	}
	return hdf5.CreateSimpleDataspace([]uint{uint(a.count)}, nil)
}

// text makes a scalar of fixed-length text.
func text(name, value string) attribute {
	data := []byte(strings.ToValidUTF8(value, "\ufffd"))
	if len(data) == 0 {
		data = []byte{0}
	}
	return attribute{name: name, elem: element{text: len(data)}, data: data}
}

// texts makes a list of texts, each as long as the longest.
func texts(name string, values []string) attribute {
	size := 1
	valid := make([]string, len(values))
	for i, v := range values {
		valid[i] = strings.ToValidUTF8(v, "\ufffd")
		size = max(size, len(valid[i]))
	}
	data := make([]byte, size*len(values))
	for i, v := range valid {
		copy(data[i*size:], v)
	}
	return attribute{name: name, elem: element{text: size}, count: len(values), data: data}
}

func integer(name string, v int64) attribute {
	return attribute{name: name, elem: element{dtype: tensor.Int64}, data: binary.LittleEndian.AppendUint64(nil, uint64(v))}
}

func boolean(name string, v bool) attribute {
	data := []byte{0}
	if v {
		data[0] = 1
	}
	return attribute{name: name, elem: element{dtype: tensor.Bool}, data: data}
}

func float(name string, v float64) attribute {
	a := floats(name, []float64{v})
	a.count = 0
	return a
}

func floats(name string, values []float64) attribute {
	a := attribute{name: name, elem: element{dtype: tensor.Float64}, count: len(values)}
	for _, v := range values {
		a.data = binary.LittleEndian.AppendUint64(a.data, math.Float64bits(v))
	}
	return a
}
