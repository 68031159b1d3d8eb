// Package cells reads files of single-cell data as records: AnnData's .h5ad and Zarr stores, and the HDF5 matrices
// of 10x Genomics' Cell Ranger.
//
// A record is a cell: its row of the matrix X and of other layers, its columns of obs, and its rows of the arrays
// in obsm. [Of] returns the cells of a file as a unit of package unit, which makes the source. The package knows
// how these programs lay out matrices, categories and missing values in groups and arrays
// (https://anndata.readthedocs.io/en/latest/fileformat-prose.html), and reads them through a [Hierarchy], so the
// same code serves HDF5 and Zarr.
//
// A matrix that is compressed by rows (CSR) becomes a field of content sparse. Its rows are read from the file's
// arrays data, indices and indptr; only indptr is in memory. Matrices by columns and columns with missing values
// are refused, with a command that rewrites the file.
package cells

import (
	"context"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// Hierarchy is a file of groups and arrays, addressed by paths from its root.
type Hierarchy interface {
	Path() string             // path of the file
	Format() string           // "h5ad" or "zarr": the suffix of anndata's functions that read and write the file
	Context() context.Context // ends all reads
	Kind(path string) Kind
	List(path string) []string // names of the members of a group, in the order of the file
	Attribute(path, name string) (Value, bool)
	UnitAttribute(name string) (unit.Attribute, bool) // attribute of the root

	// Field returns the field of an array whose records are along its first axis, and their number.
	Field(path string) (source.Field, int64, error)
	// Column opens an array; its rows are the values.
	Column(path string) (array.Column, error)
	// Numbers opens an array with one axis of numbers, for reading ranges of it.
	Numbers(path string) (array.Records, tensor.DType, error)
	// Check returns an error if an array that must be read as a whole does not have one axis, or promises more
	// values than its file can have. A shape takes a few bytes in a file, and could otherwise claim all memory.
	Check(path string) error
}

// Kind says what is at a path of a Hierarchy.
type Kind uint8

// Kinds of a path. Empty is an array without a value, which AnnData writes for a matrix that is None.
const (
	Missing Kind = iota
	Group
	Array
	Empty
)

// Value is the value of an attribute. Each method returns false if the value has another type.
type Value interface {
	Text() (string, bool)
	Strings() ([]string, bool)
	Ints() ([]int64, bool)
}

// Encoding returns the encoding-type that AnnData notes for a group or array, such as "categorical" or
// "csr_matrix"; "" if it has no such attribute. AnnData before 0.7 noted h5sparse_format instead.
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

// isAnnData reports whether anndata wrote a file. Since 0.8 it notes the encoding at the root; older files are
// recognized by the names of their groups.
func isAnnData(h Hierarchy) bool {
	return h.Kind("obs") == Group &&
		(Encoding(h, "") == "anndata" || h.Kind("var") != Missing && h.Kind("X") != Missing)
}

// isTenX reports whether a file is a feature-barcode matrix of Cell Ranger 3 or later.
// https://www.10xgenomics.com/support/software/cell-ranger/latest/analysis/outputs/cr-outputs-h5-matrices
func isTenX(h Hierarchy) bool {
	for _, name := range []string{"data", "indices", "indptr", "barcodes", "features"} {
		if h.Kind("matrix/"+name) == Missing {
			return false
		}
	}
	return true
}

// Texts returns all elements of an array with one axis as texts.
func Texts(h Hierarchy, path string) (list []string, err error) {
	c, err := one(h, path)
	if err != nil {
		return nil, err
	}
	err = c.Each(func(b []byte) error {
		if !c.Field.IsBytes() {
			b = []byte(c.Field.DType.Text(b))
		}
		list = append(list, string(b))
		return nil
	})
	return list, err
}
