package view

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// metadata is the group of a file for everything that is not a field.
const metadata = "penstock"

// Describe gives the datasets of a schema's fields the attributes that explain them to readers
// that know nothing of manifests, and returns them with a dataset /penstock/ATTRIBUTE/FIELD for
// each attribute that does not fit into an object header.
func Describe(objects []encode.Object, schema store.Schema) ([]encode.Object, error) {
	var long []encode.Object
	for _, f := range schema.Fields {
		path := "/" + f.Name
		if f.Ragged {
			path += "/" + string(layout.Values)
		}
		var fitting []encode.Attribute
		for _, a := range attributes(f) {
			if a.Fits() {
				fitting = append(fitting, a)
				continue
			}
			long = append(long, encode.Object{
				Path: "/" + metadata + "/" + a.Name + "/" + f.Name, Element: a.Element, Dims: []int64{int64(a.Count)}, Data: a.Data,
			})
		}
		for i := range objects {
			if objects[i].Path == path {
				objects[i].Attributes = fitting
			}
		}
	}
	if len(long) > 0 && schema.Index(metadata) >= 0 {
		return nil, fmt.Errorf("field %q: HDF5 files keep what is too long for attributes under that name, here %s; choose "+
			"another one", metadata, long[0].Path)
	}
	return append(objects, long...), nil
}

// attributes returns the HDF5 attributes of a field, or of the values of a ragged field.
func attributes(f store.Field) (list []encode.Attribute) {
	if f.Layout != "" {
		list = append(list, encode.Text("layout", "N"+f.Layout))
	}
	if f.Content != "" {
		list = append(list, encode.Text("content", f.Content))
	}
	if f.Image != "" {
		list = append(list, encode.Text("image", f.Image))
	}
	if f.Instances != "" {
		list = append(list, encode.Text("instances", f.Instances))
	}
	if f.DType == tensor.BFloat16 {
		list = append(list, encode.Text("dtype", f.DType.String()))
	}
	if len(f.Classes) > 0 {
		list = append(list, encode.Texts("class_names", f.Classes))
	}
	if n := f.Normalization; n != nil {
		list = append(list, encode.Floats("mean", n.Mean), encode.Floats("std", n.Std), encode.Float("scale", n.Scale),
			encode.Bool("normalization_applied", n.Applied))
	}
	return list
}

// rootAttributes returns the attributes that identify a view and its dataset.
func rootAttributes(d *store.Dataset) []encode.Attribute {
	list := []encode.Attribute{encode.Text("format", layout.HDF5View), encode.Integer("num_samples", d.Records)}
	if d.Manifest != nil {
		list = append(list, encode.Text("id", d.Manifest.ID))
	}
	return list
}
