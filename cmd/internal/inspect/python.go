package inspect

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// python returns an expression of NumPy (np) or h5py that opens an array of a field without
// reading it: of ragged fields its values or its offsets.
func python(d *store.Dataset, field int, part store.Part) string {
	c := d.Column(field, part)
	if d.Format == "hdf5" {
		return fmt.Sprintf("h5py.File(%s)[%s]", quote(d.Path), quote(strings.TrimPrefix(c.Path(), "/")))
	}
	if len(c.Extents) == 1 {
		return fmt.Sprintf(`np.load(%s, mmap_mode="r")`, quote(c.Extents[0].Path))
	}
	pattern := strings.ReplaceAll(d.Path, "%", "%%")
	pattern = filepath.Join(pattern, c.Name+"-%05d.npy")
	return fmt.Sprintf(`[np.load(%s %% i, mmap_mode="r") for i in range(%d)]`, quote(pattern), len(c.Extents))
}

// memmap returns an expression that maps n records of spec, stored from an offset of a file
// on, as one array.
func memmap(path string, spec tensor.Spec, offset, n int64) string {
	shape := append(tensor.Shape{int(n)}, spec.Shape...)
	return fmt.Sprintf("np.memmap(%s, %q, \"r\", %d, %v)", quote(path), spec.DType.Descr(), offset, shape)
}

// quote writes a string as Python does; Go's escapes mean the same there.
func quote(s string) string { return strconv.Quote(s) }
