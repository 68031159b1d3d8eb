package array

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Raw is the element type and shape of files that have the elements of an array and no header, as numpy.tofile
// writes them. Only the user knows both.
type Raw struct {
	column.Type
	BigEndian bool
}

// ParseRaw reads the notation of String: a type of numbers as in --fields, with > before it for big-endian
// elements.
func ParseRaw(text string) (*Raw, error) {
	name, big := strings.CutPrefix(text, ">")
	t, err := column.ParseType(name)
	if err == nil && t.Kind != column.Numbers {
		err = fmt.Errorf("%s is no type of numbers", name)
	}
	return &Raw{t, big}, err
}

// String returns the notation that ParseRaw reads.
func (t *Raw) String() string {
	if t.BigEndian {
		return ">" + t.Type.String()
	}
	return t.Type.String()
}

// Open returns the array of a file and the closer of the file.
func (t *Raw) Open(ctx context.Context, root *vfs.Root, path string) (Column, io.Closer, error) {
	f, size, err := source.OpenSized(ctx, root, path)
	if err != nil {
		return Column{}, nil, err
	}
	c, err := t.column(f, size)
	if err != nil {
		return Column{}, nil, errors.Join(err, f.Close())
	}
	return c, f, nil
}

// column returns the array of a file of size bytes. The size must fit the declaration exactly: it is the only check
// that the declaration belongs to the file.
func (t *Raw) column(r io.ReaderAt, size int64) (Column, error) {
	row := source.NumberField("x", t.DType, t.Shape...).RecordBytes()
	h := Header{DType: t.DType, BigEndian: t.BigEndian}
	switch rows := size / int64(row); {
	case t.Ragged && size%int64(row) != 0:
		return Column{}, fmt.Errorf("has %d bytes, and a row of %v has %d, so the last row is cut short", size, t, row)
	case !t.Ragged && size != int64(row):
		return Column{}, fmt.Errorf("has %d bytes, and %v has %d", size, t, row)
	case t.Ragged:
		h.Shape = append(h.Shape, rows)
	}
	for _, n := range t.Shape {
		h.Shape = append(h.Shape, int64(n))
	}
	h, single := h.single()
	field, count, err := h.field("data", "data")
	if err != nil {
		return Column{}, err
	}
	c := h.layout(field).column(field, count, r, 0)
	c.Single = single
	return c, nil
}
