//go:build cgo && !nolibhdf5

package hdf5

import (
	"errors"
	"fmt"

	"gonum.org/v1/hdf5"

	"github.com/penstock/penstock/internal/hdf5/encode"
)

// attributed is an object that can have attributes: a group or a dataset of gonum.
type attributed interface {
	CreateAttribute(name string, dtype *hdf5.Datatype, space *hdf5.Dataspace) (*hdf5.Attribute, error)
}

func writeAttributes(to attributed, list []encode.Attribute) error {
	for i := range list {
		if err := writeAttribute(to, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func writeAttribute(to attributed, a *encode.Attribute) error {
	if len(a.Data) == 0 || len(a.Data) != max(1, a.Count)*a.Element.Size() {
		return fmt.Errorf("attribute %s: %d bytes for %d elements of %d", a.Name, len(a.Data), a.Count, a.Element.Size())
	}
	t, err := openType(a.Element)
	if err != nil {
		return err
	}
	defer t.Close()
	space, err := spaceOf(a)
	if err != nil {
		return gonumFailed("make dataspace")
	}
	defer space.Close()
	h, err := to.CreateAttribute(a.Name, t, space)
	if err != nil {
		return gonumFailed("create attribute " + a.Name)
	}
	if err := h.Write(&a.Data[0], t); err != nil {
		return errors.Join(gonumFailed("write attribute "+a.Name), h.Close())
	}
	return h.Close()
}

func spaceOf(a *encode.Attribute) (*hdf5.Dataspace, error) {
	if a.Count == 0 {
		return hdf5.CreateDataspace(hdf5.S_SCALAR)
	}
	return hdf5.CreateSimpleDataspace([]uint{uint(a.Count)}, nil)
}
