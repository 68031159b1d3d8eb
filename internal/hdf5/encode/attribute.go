package encode

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// Attribute is a named value of a dataset or a group: a number or a text, or a list of these.
type Attribute struct {
	Name    string
	Element Element
	Count   int    // elements of a list; 0 for a single element, which is no list of one
	Data    []byte // of all elements, little endian
}

// AttributeLimit is how many bytes of data an attribute may have. HDF5 has 64 KiB for a message,
// which also holds the attribute's name, type and shape.
const AttributeLimit = 60000

// Fits reports whether a is within AttributeLimit.
func (a *Attribute) Fits() bool { return len(a.Data) <= AttributeLimit }

// Text returns a string attribute. An empty one has a zero byte, as HDF5 has no strings of no
// bytes. Invalid UTF-8 becomes U+FFFD.
func Text(name, value string) Attribute {
	a := Texts(name, []string{value})
	a.Count = 0
	return a
}

// Texts returns an attribute that is a list of strings. HDF5 strings of fixed size have one size
// for all strings; here it is the size of the longest.
func Texts(name string, values []string) Attribute {
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
	return Attribute{Name: name, Element: Element{Text: size}, Count: len(values), Data: data}
}

// Integer returns an attribute that is an int64.
func Integer(name string, v int64) Attribute {
	return Attribute{Name: name, Element: Element{DType: tensor.Int64}, Data: binary.LittleEndian.AppendUint64(nil,
		uint64(v))}
}

// Float returns an attribute that is a float64.
func Float(name string, v float64) Attribute {
	a := Floats(name, []float64{v})
	a.Count = 0
	return a
}

// Floats returns an attribute that is a list of float64.
func Floats(name string, values []float64) Attribute {
	a := Attribute{Name: name, Element: Element{DType: tensor.Float64}, Count: len(values)}
	for _, v := range values {
		a.Data = binary.LittleEndian.AppendUint64(a.Data, math.Float64bits(v))
	}
	return a
}

// Bool returns an attribute that is a bool, as h5py stores bools.
func Bool(name string, v bool) Attribute {
	a := Attribute{Name: name, Element: Element{DType: tensor.Bool}, Data: []byte{0}}
	if v {
		a.Data[0] = 1
	}
	return a
}
