// Package cells is the records of single cells: AnnData's .h5ad and Zarr, and what 10x's Cell Ranger writes.
//
// A record is a cell: its row of the matrix X, its columns of obs, and its arrays of obsm. The package knows how these
// programs lay matrices, categories and missing values out in groups and arrays, and reads the groups and arrays by a
// [Hierarchy], so that it is the same for HDF5 and Zarr. A matrix that is compressed by rows becomes a field of content
// sparse, whose rows are read by their numbers from the arrays as they are.
package cells

import (
	"context"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// Hierarchy is a file of groups and arrays, by their paths from the root.
type Hierarchy interface {
	Path() string             // of the file
	Format() string           // "h5ad" or "zarr", by which anndata calls its functions that read and write
	Context() context.Context // which ends reading
	Kind(path string) Kind
	List(path string) []string // the members of a group, in the order of the file
	Attribute(path, name string) (Value, bool)
	UnitAttribute(name string) (unit.Attribute, bool) // of the root

	// Field describes the rows of an array, and counts them.
	Field(path string) (source.Field, int64, error)
	// Column opens an array, whose rows are the values.
	Column(path string) (array.Column, error)
	// Numbers opens an array of numbers along one axis.
	Numbers(path string) (array.Records, tensor.DType, error)
	// Check returns an error if an array that is needed as a whole has not one axis, or promises more values than its file
	// can have: a shape of a few bytes would otherwise take all memory.
	Check(path string) error
}

// Kind says what is at a path.
type Kind uint8

// What is at a path. Empty is an array that has no value, such as a matrix that is None.
const (
	Missing Kind = iota
	Group
	Array
	Empty
)

// Value is the value of an attribute.
type Value interface {
	Text() (string, bool)
	Strings() ([]string, bool)
	Ints() ([]int64, bool)
}

// Encoding says what a group or array stands for, as AnnData notes: "categorical", "csr_matrix" and others; "" if
// there is no note.
func Encoding(h Hierarchy, path string) string {
	if text := textOf(h, path, "encoding-type"); text != "" {
		return text
	}
	if text := textOf(h, path, "h5sparse_format"); text != "" { // AnnData before 0.7
		return text + "_matrix"
	}
	return ""
}

func textOf(h Hierarchy, path, name string) string {
	v, ok := h.Attribute(path, name)
	if !ok {
		return ""
	}
	text, _ := v.Text()
	return text
}

// Is reports whether a file has single cells.
func Is(h Hierarchy) bool { return isAnnData(h) || isTenX(h) }

// isAnnData reports whether anndata wrote a file: by the attribute that it writes since 0.8, or for older files by the
// names of its groups.
func isAnnData(h Hierarchy) bool {
	return h.Kind("obs") == Group &&
		(Encoding(h, "") == "anndata" || h.Kind("var") != Missing && h.Kind("X") != Missing)
}

// isTenX reports whether a file is a matrix of 10x Genomics' Cell Ranger, version 3 or later.
func isTenX(h Hierarchy) bool {
	for _, name := range []string{"data", "indices", "indptr", "barcodes", "features"} {
		if h.Kind("matrix/"+name) == Missing {
			return false
		}
	}
	return true
}

// Texts returns all elements of an array of one axis, as texts.
func Texts(h Hierarchy, path string) (list []string, err error) {
	c, err := one(h, path)
	if err != nil {
		return nil, err
	}
	err = c.Each(func(b []byte) {
		if !c.Field.IsBytes() {
			b = []byte(c.Field.DType.Text(b))
		}
		list = append(list, string(b))
	})
	return list, err
}
