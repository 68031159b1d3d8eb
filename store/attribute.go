package store

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// Attribute is what an HDF5 file says of a field, or of itself, to those who know nothing of
// manifests: a number, a text, or a list of these.
type Attribute struct {
	Name  string
	DType tensor.DType // of the elements, if they are numbers
	Text  int          // bytes of an element, if it is text: UTF-8, padded with zeros; 0: it is a number
	Count int          // elements of a list; 0: it is one element, and no list
	Data  []byte       // of all elements, little endian
}

// AttributeLimit is how many bytes of data an attribute can have: HDF5 has 64 KiB for it and
// what describes it. One that has more is a dataset instead, /penstock/NAME/FIELD.
const AttributeLimit = 60000

// Fits reports whether a is within AttributeLimit.
func (a *Attribute) Fits() bool { return len(a.Data) <= AttributeLimit }

// Attributes returns those of the field, or of the values of a ragged one.
func (f Field) Attributes() (list []Attribute) {
	if f.Layout != "" {
		list = append(list, TextAttribute("layout", "N"+f.Layout))
	}
	if f.Content != "" {
		list = append(list, TextAttribute("content", f.Content))
	}
	if f.DType == tensor.BFloat16 {
		list = append(list, TextAttribute("dtype", f.DType.String()))
	}
	if len(f.Classes) > 0 {
		list = append(list, textsAttribute("class_names", f.Classes))
	}
	if n := f.Normalization; n != nil {
		scale := floatsAttribute("scale", []float64{n.Scale})
		scale.Count = 0
		list = append(list, floatsAttribute("mean", n.Mean), floatsAttribute("std", n.Std), scale,
			boolAttribute("normalization_applied", n.Applied))
	}
	return list
}

// TextAttribute is a text. One that is empty has a zero byte, as HDF5 has no texts of no bytes,
// and what is no UTF-8 in it becomes U+FFFD.
func TextAttribute(name, value string) Attribute {
	a := textsAttribute(name, []string{value})
	a.Count = 0
	return a
}

// IntegerAttribute is an int64.
func IntegerAttribute(name string, v int64) Attribute {
	return Attribute{Name: name, DType: tensor.Int64, Data: binary.LittleEndian.AppendUint64(nil, uint64(v))}
}

// textsAttribute is a list of texts, each as long as the longest.
func textsAttribute(name string, values []string) Attribute {
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
	return Attribute{Name: name, Text: size, Count: len(values), Data: data}
}

func floatsAttribute(name string, values []float64) Attribute {
	a := Attribute{Name: name, DType: tensor.Float64, Count: len(values)}
	for _, v := range values {
		a.Data = binary.LittleEndian.AppendUint64(a.Data, math.Float64bits(v))
	}
	return a
}

func boolAttribute(name string, v bool) Attribute {
	a := Attribute{Name: name, DType: tensor.Bool, Data: []byte{0}}
	if v {
		a.Data[0] = 1
	}
	return a
}
