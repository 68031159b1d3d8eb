package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// idxTypes are the element types of IDX, big endian: http://yann.lecun.com/exdb/mnist/
var idxTypes = map[byte]tensor.DType{
	0x08: tensor.Uint8, 0x09: tensor.Int8, 0x0b: tensor.Int16, 0x0c: tensor.Int32, 0x0d: tensor.Float32, 0x0e: tensor.Float64,
}

// isIDXHead reports whether a file begins as IDX files do.
func isIDXHead(head []byte) bool {
	if len(head) < 8 || head[0] != 0 || head[1] != 0 {
		return false
	}
	_, ok := idxTypes[head[2]]
	return ok && head[3] >= 1 && head[3] < tensor.MaxRank
}

// readIDX reads a header: two zero bytes, the type, the number of axes, their lengths.
func readIDX(r io.Reader) (h npyHeader, err error) {
	var b [4 + 4*tensor.MaxRank]byte
	if _, err := io.ReadFull(r, b[:8]); err != nil {
		return h, fmt.Errorf("header: %w", cutShort(err))
	}
	if !isIDXHead(b[:8]) {
		return h, errors.New("is no IDX file")
	}
	h.dtype = idxTypes[b[2]]
	h.big = h.dtype.Size() > 1
	rank := int(b[3])
	if _, err := io.ReadFull(r, b[8:4+4*rank]); err != nil {
		return h, fmt.Errorf("header: %w", cutShort(err))
	}
	for i := range rank {
		h.shape = append(h.shape, int64(binary.BigEndian.Uint32(b[4+4*i:])))
	}
	h.offset = int64(4 + 4*rank)
	return h, nil
}

// openIDX opens a file of MNIST's format, also compressed with gzip. One of images takes
// along the one of labels beside it, as its name says.
func openIDX(_ context.Context, path string, _ Options, wanted []Wanted) (Source, error) {
	files, err := idxFiles(path)
	if err != nil {
		return nil, err
	}
	var columns []column
	var open []io.Closer
	for _, name := range files {
		c, f, err := idxColumn(name)
		if err != nil {
			closeFiles(open)
			return nil, fmt.Errorf("source %s: %w", name, withoutPath(err))
		}
		columns, open = append(columns, c), append(open, f)
	}
	if columns, err = selectColumns(columns, wanted); err != nil {
		closeFiles(open)
		return nil, err
	}
	return newArrays("idx", path, baseName(path), columns, open...)
}

// idxFiles returns the files of one set: images, and labels where there are some.
func idxFiles(path string) ([]string, error) {
	files, err := filesOf(path, "*idx*-ubyte*")
	if err != nil {
		return nil, err
	}
	images := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return !strings.Contains(filepath.Base(name), "images") })
	switch {
	case len(images) > 1:
		return nil, fmt.Errorf("source %s: holds several sets; give one of %s", path, enumerate(images, 10))
	case len(images) == 0:
		return files, nil
	}
	dir, name := filepath.Split(images[0])
	prefix, _, _ := strings.Cut(name, "images")
	labels, err := vfs.Glob(escape(dir) + escape(prefix) + "labels*")
	if err != nil || len(labels) == 0 {
		return images, nil
	}
	return []string{images[0], labels[0]}, nil
}

// idxColumn opens a file as a column.
func idxColumn(name string) (column, io.Closer, error) {
	f, err := vfs.Open(name)
	if err != nil {
		return column{}, nil, err
	}
	c, err := idxColumnOf(f, filepath.Base(name))
	if err != nil {
		f.Close()
	}
	return c, f, err
}

func idxColumnOf(f vfs.File, name string) (column, error) {
	magic := make([]byte, 2)
	if err := readAt(f, magic, 0); err != nil {
		return column{}, cutShort(err)
	}
	if !bytes.Equal(magic, []byte("\x1f\x8b")) {
		h, err := readIDX(f)
		if err != nil {
			return column{}, err
		}
		field, layout, err := idxField(h, name)
		if err != nil {
			return column{}, err
		}
		info, err := f.Stat()
		if need := h.shape[0] * int64(layout.size); err == nil && need > info.Size()-h.offset {
			err = fmt.Errorf("is cut short: the header promises %d bytes of elements, there are %d", need, info.Size()-h.offset)
		}
		return layout.column(field, h.shape[0], f, h.offset), err
	}
	open := func() (io.ReadCloser, error) { return gzip.NewReader(io.NewSectionReader(f, 0, 1<<62)) }
	r, err := open()
	if err != nil {
		return column{}, err
	}
	h, err := readIDX(r)
	if err != nil {
		return column{}, err
	}
	field, layout, err := idxField(h, name)
	return layout.stream(field, h.shape[0], func() (io.ReadCloser, error) {
		r, err := open()
		if err == nil {
			_, err = io.CopyN(io.Discard, r, h.offset)
		}
		return r, err
	}), err
}

// idxField returns the field of a file: images are gray ones, labels class numbers.
func idxField(h npyHeader, name string) (Field, fixed, error) {
	f, _, err := h.field(fieldName(strings.TrimSuffix(name, ".gz")), name)
	if err != nil {
		return f, fixed{}, err
	}
	layout := h.layout(f)
	switch {
	case h.dtype == tensor.Uint8 && len(f.Shape) == 2:
		f = array(imagesField, tensor.Uint8, 1, f.Shape[0], f.Shape[1])
		f.Layout = store.CHW
	case h.dtype == tensor.Uint8 && len(f.Shape) == 0:
		f = array(labelsField, tensor.Int64)
		layout.convert = widened
	}
	f.Origin = name
	return f, layout, nil
}
