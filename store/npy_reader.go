package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// isNPY reports whether a file begins like a .npy file.
func isNPY(path string) bool {
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	vfs.Random(f)
	head := make([]byte, len(npy.Magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == npy.Magic
}

// OpenNPY opens a .npy file as a dataset of one field, which has the name of the file. Its records are along the first
// axis. An array that cannot be mapped, because it is big endian or in Fortran order, is ErrUnsupported.
func OpenNPY(path string) (*Dataset, error) {
	d, err := openNPY(path)
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return d, nil
}

func openNPY(path string) (*Dataset, error) {
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	vfs.Random(f) // otherwise a page after the header is marked for readahead, and its first access reads far ahead
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h, err := npy.Read(f)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	if errors.Is(err, npy.ErrText) {
		err = fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	convert := shell.Rewrite(path, "")
	switch {
	case len(h.Shape) == 0:
		return nil, fmt.Errorf("it is a single number, and no records: %w", ErrUnsupported)
	case h.Shape[0] == 0:
		return nil, errors.New("it has no elements")
	case h.Fortran:
		return nil, fmt.Errorf("it is in Fortran order; make a dataset of it: %s: %w", convert, ErrUnsupported)
	case h.BigEndian:
		return nil, fmt.Errorf("its numbers are big endian; make a dataset of it: %s: %w", convert, ErrUnsupported)
	case h.Offset%int64(h.DType.Size()) != 0:
		return nil, fmt.Errorf("its numbers start at byte %d, which is no multiple of their size; make a dataset "+
			"of it: %s: %w", h.Offset, convert, ErrUnsupported)
	}
	shape := make([]int, len(h.Shape)-1)
	for i, n := range h.Shape[1:] {
		shape[i] = int(n)
	}
	field := NewField(layout.FieldName(strings.TrimSuffix(filepath.Base(path), ".npy")), h.DType, shape...)
	if err := field.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	n, size := h.Shape[0], int64(field.RecordBytes())
	if n > (info.Size()-h.Offset)/size {
		return nil, fmt.Errorf("it has %d bytes, fewer than %d records of %d bytes need: %w", info.Size(), n, size,
			ErrCorrupt)
	}
	digest, err := npy.Digest(f, info.Size())
	if err != nil {
		return nil, err
	}
	d := &Dataset{Path: path, Format: "npy", Records: n, Schema: Schema{Fields: []Field{field}}}
	d.layout.Digest = digest
	d.layout.Columns = layout.Columns(d.Schema.Specs())
	d.layout.Columns[0].Add(layout.Extent{Path: path, Offset: h.Offset, Count: n})
	return d, nil
}
