package view

import (
	"fmt"

	"github.com/penstock/penstock/store"
)

// books is the group of attributes that are too long for one, as in package store/hdf5.
const books = "penstock"

// elementType returns the datatype message of an attribute's elements.
func elementType(a *store.Attribute) ([]byte, error) {
	if a.Text > 0 {
		return textType(a.Text), nil
	}
	return typeOf(a.DType)
}

// attributesOf returns those of a field that fit into an object header.
func attributesOf(f store.Field) (list []store.Attribute) {
	for _, a := range f.Attributes() {
		if a.Fits() {
			list = append(list, a)
		}
	}
	return list
}

// rootAttributes says what the file is, and of which dataset.
func rootAttributes(d *store.Dataset) []store.Attribute {
	list := []store.Attribute{store.TextAttribute("format", store.HDF5View), store.IntegerAttribute("num_samples", d.Records)}
	if d.Manifest != nil {
		list = append(list, store.TextAttribute("id", d.Manifest.ID))
	}
	return list
}

// longAttributes writes the attributes that do not fit as datasets penstock/ATTRIBUTE/FIELD,
// and links their group to root, if there are any.
func (w *writer) longAttributes(root *group, schema store.Schema) error {
	var names []string
	groups := make(map[string]*group)
	for _, f := range schema.Fields {
		for _, a := range f.Attributes() {
			if a.Fits() {
				continue
			}
			t, err := elementType(&a)
			if err != nil {
				return err
			}
			if groups[a.Name] == nil {
				groups[a.Name] = &group{}
				names = append(names, a.Name)
			}
			groups[a.Name].link(f.Name, w.data(t, []int64{int64(a.Count)}, a.Data))
		}
	}
	if len(names) == 0 {
		return nil
	}
	top := group{}
	for _, n := range names {
		at, err := w.group(groups[n], nil)
		if err != nil {
			return err
		}
		top.link(n, at)
	}
	if schema.Index(books) >= 0 {
		return fmt.Errorf("field %q: HDF5 files keep what is too long for attributes under that name, as here %v; choose another one", books, names)
	}
	at, err := w.group(&top, nil)
	root.link(books, at)
	return err
}
