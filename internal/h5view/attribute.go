package h5view

import (
	"encoding/binary"
	"math"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// books is the group of attributes that are too long for one, as in package store/hdf5.
const books = "penstock"

// attributeLimit is how many bytes of a value an object header surely has room for.
const attributeLimit = 60000

// attribute is a named value: a scalar, or without scalar a list.
type attribute struct {
	name   string
	typ    []byte
	scalar bool
	count  int64
	data   []byte
}

func text(name, value string) attribute {
	a := texts(name, []string{value})
	a.scalar = true
	return a
}

// texts is a list of texts of one length, as long as the longest.
func texts(name string, values []string) attribute {
	size := 1
	for _, v := range values {
		size = max(size, len(v))
	}
	data := make([]byte, size*len(values))
	for i, v := range values {
		copy(data[i*size:], v)
	}
	return attribute{name: name, typ: textType(size), count: int64(len(values)), data: data}
}

func integer(name string, v int64) attribute {
	return attribute{name: name, typ: int64Type, scalar: true, data: binary.LittleEndian.AppendUint64(nil, uint64(v))}
}

func floats(name string, values ...float64) attribute {
	a := attribute{name: name, typ: floatType(8, 52, 11), count: int64(len(values))}
	for _, v := range values {
		a.data = binary.LittleEndian.AppendUint64(a.data, math.Float64bits(v))
	}
	return a
}

func boolean(name string, v bool) attribute {
	a := attribute{name: name, typ: boolType(), scalar: true, data: []byte{0}}
	if v {
		a.data[0] = 1
	}
	return a
}

// attributesOf says about a field what package store/hdf5 says.
func attributesOf(f store.Field) (list []attribute) {
	if f.Layout != "" {
		list = append(list, text("layout", "N"+f.Layout))
	}
	if f.Content != "" {
		list = append(list, text("content", f.Content))
	}
	if f.DType == tensor.BFloat16 {
		list = append(list, text("dtype", f.DType.String()))
	}
	if a := texts("class_names", f.Classes); len(f.Classes) > 0 && len(a.data) <= attributeLimit {
		list = append(list, a)
	}
	if n := f.Normalization; n != nil {
		scale := floats("scale", n.Scale)
		scale.scalar = true
		list = append(list, floats("mean", n.Mean...), floats("std", n.Std...), scale, boolean("normalization_applied", n.Applied))
	}
	return list
}

// rootAttributes says what the file is, and of which dataset.
func rootAttributes(d *store.Dataset) []attribute {
	list := []attribute{text("format", "penstock view"), integer("num_samples", d.Records)}
	if d.Manifest != nil {
		list = append(list, text("id", d.Manifest.ID))
	}
	return list
}

// longAttributes writes the class names that are too long for an attribute as datasets
// penstock/class_names/FIELD. It returns 0 if there are none.
func (w *writer) longAttributes(fields []store.Field) int64 {
	names := group{}
	for _, f := range fields {
		if a := texts("class_names", f.Classes); len(a.data) > attributeLimit {
			names.link(f.Name, w.data(a.typ, []int64{a.count}, a.data))
		}
	}
	if len(names.links) == 0 {
		return 0
	}
	top := group{}
	top.link("class_names", w.group(&names, nil))
	return w.group(&top, nil)
}
