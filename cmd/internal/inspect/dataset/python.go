package dataset

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Python returns an expression in Python that opens an array of a field without reading it, by
// NumPy (np), h5py or zarr. For a ragged field, part chooses its values or its offsets. The
// expression is "" for compressed values in an earlier generation of an HDF5 file, which h5py
// cannot find.
func Python(d *store.Dataset, field int, part layout.Part) string {
	c := layout.Of(d).Column(field, part)
	if d.Format == "hdf5" && isEarlier(d) { // h5py opens the newest generation only
		if e := c.Extents[0]; !c.Packed && e.Count > 0 {
			return Memmap(d.Path, c.Spec, e.Offset, e.Count)
		}
		return ""
	}
	if d.Format == "hdf5" {
		return fmt.Sprintf("h5py.File(%s)[%s]", Quote(d.Path), Quote(strings.TrimPrefix(c.Path(), "/")))
	}
	if d.Format == "zarr" {
		return fmt.Sprintf(`zarr.open_array(%s, mode="r")`, Quote(filepath.Join(d.Path, filepath.FromSlash(c.Path()))))
	}
	if len(c.Extents) == 1 {
		return fmt.Sprintf(`np.load(%s, mmap_mode="r")`, Quote(c.Extents[0].Path))
	}
	pattern := strings.ReplaceAll(d.Path, "%", "%%")
	pattern = filepath.Join(pattern, c.Name+"-%05d.npy")
	return fmt.Sprintf(`[np.load(%s %% i, mmap_mode="r") for i in range(%d)]`, Quote(pattern), len(c.Extents))
}

// isEarlier reports whether d is not the newest generation of its file.
func isEarlier(d *store.Dataset) bool {
	if d.Manifest == nil {
		return false
	}
	newest, err := store.ReadManifest(d.Path)
	return err == nil && newest.Generation != d.Manifest.Generation
}

// Memmap returns an expression that maps n records of spec, stored one after the other from an
// offset of a file on.
func Memmap(path string, spec tensor.Spec, offset, n int64) string {
	shape := append(tensor.Shape{int(n)}, spec.Shape...)
	return fmt.Sprintf("np.memmap(%s, %q, \"r\", %d, %v)", Quote(path), spec.DType.Descr(), offset, shape)
}

// Quote returns s as a string literal of Python. The escapes of a Go literal mean the same in
// Python.
func Quote(s string) string { return strconv.Quote(s) }

// Identifier returns a variable name for a field that Python accepts.
func Identifier(name string) string {
	id := strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if id == "" || id[0] >= '0' && id[0] <= '9' {
		id = "_" + id
	}
	return id
}
