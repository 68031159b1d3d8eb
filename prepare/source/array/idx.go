package array

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

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// idxTypes has the element types of IDX by their code; elements are big endian. http://yann.lecun.com/exdb/mnist/
var idxTypes = map[byte]tensor.DType{
	0x08: tensor.Uint8, 0x09: tensor.Int8, 0x0b: tensor.Int16, 0x0c: tensor.Int32, 0x0d: tensor.Float32,
	0x0e: tensor.Float64,
}

// readIDX reads an IDX header: two zero bytes, the code of the type, the number of axes, and the length of each
// axis as a big-endian uint32.
func readIDX(r io.Reader) (h Header, err error) {
	var b [4 + 4*tensor.MaxRank]byte
	if _, err := io.ReadFull(r, b[:8]); err != nil {
		return h, fmt.Errorf("header: %w", CutShort(err))
	}
	if !source.IsIDX(b[:8]) {
		return h, errors.New("is not an IDX file")
	}
	h.DType = idxTypes[b[2]]
	h.BigEndian = h.DType.Size() > 1
	rank := int(b[3])
	if _, err := io.ReadFull(r, b[8:4+4*rank]); err != nil {
		return h, fmt.Errorf("header: %w", CutShort(err))
	}
	for i := range rank {
		h.Shape = append(h.Shape, int64(binary.BigEndian.Uint32(b[4+4*i:])))
	}
	h.Offset = int64(4 + 4*rank)
	return h, nil
}

// OpenIDX opens a file in the format of MNIST, plain or gzipped. For a file of images it also opens the file of
// labels, which has "labels" in place of "images" in its name.
func OpenIDX(ctx context.Context, root *vfs.Root, path string, _ source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := idxFiles(root, path)
	if err != nil {
		return nil, err
	}
	var columns []Column
	var open []io.Closer
	for _, name := range files {
		c, f, err := idxColumn(ctx, root, name)
		if err != nil {
			source.CloseFiles(open)
			return nil, fmt.Errorf("source %s: %w", name, source.WithoutPath(err))
		}
		columns, open = append(columns, c), append(open, f)
	}
	if columns, err = Select(columns, selection); err != nil {
		source.CloseFiles(open)
		return nil, err
	}
	return New("idx", path, source.BaseName(path), columns, append(open, root)...)
}

// idxFiles returns the files of one set: the images, and the labels if there are any.
func idxFiles(root *vfs.Root, path string) ([]string, error) {
	files, err := source.FilesIn(root, path, "*idx*-ubyte*")
	if err != nil {
		return nil, err
	}
	images := slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return !strings.Contains(filepath.Base(name), "images")
	})
	switch {
	case len(images) > 1:
		return nil, fmt.Errorf("source %s: holds several sets; give one of %s", path, source.Enumerate(images, 10))
	case len(images) == 0:
		return files, nil
	}
	dir, name := filepath.Split(images[0])
	prefix, _, _ := strings.Cut(name, "images")
	labels := root.Glob(filepath.Clean(dir), source.Escape(prefix)+"labels*")
	if len(labels) == 0 {
		return images, nil
	}
	return []string{images[0], labels[0]}, nil
}

// idxColumn opens a file and returns its column. The caller closes the file.
func idxColumn(ctx context.Context, root *vfs.Root, name string) (Column, io.Closer, error) {
	f, err := source.OpenUntil(ctx, root, name)
	if err != nil {
		return Column{}, nil, err
	}
	c, err := idxColumnOf(ctx, f, filepath.Base(name))
	if err != nil {
		f.Close()
	}
	return c, f, err
}

// idxColumnOf returns the column of an IDX file, plain or gzipped, as MNIST is published. A plain file has random
// access, and its size is compared with its header at once. A gzipped file is decompressed from its beginning for
// each pass, and its end is checked when a pass reaches it.
func idxColumnOf(ctx context.Context, f vfs.File, name string) (Column, error) {
	magic := make([]byte, 2)
	// The content decides and not the name: files are often unpacked and keep their name.
	if err := source.ReadAt(f, magic, 0); err != nil {
		return Column{}, CutShort(err)
	}
	if !bytes.Equal(magic, []byte("\x1f\x8b")) {
		h, err := readIDX(f)
		if err != nil {
			return Column{}, err
		}
		field, layout, err := idxField(h, name)
		if err != nil {
			return Column{}, err
		}
		info, err := f.Stat()
		if err == nil {
			err = h.checkSize(h.Shape[0]*int64(layout.Size), info.Size())
		}
		return layout.column(field, h.Shape[0], f, h.Offset), err
	}
	// The section has no end, as the size of the compressed data is not needed; gzip ends by itself.
	open := func() (io.ReadCloser, error) { return gzip.NewReader(io.NewSectionReader(f, 0, 1<<62)) }
	r, err := open()
	if err != nil {
		return Column{}, err
	}
	h, err := readIDX(r)
	if err != nil {
		return Column{}, err
	}
	field, layout, err := idxField(h, name)
	return layout.stream(field, h.Shape[0], func() (io.ReadCloser, error) {
		r, err := open()
		if err == nil {
			_, err = io.CopyN(io.Discard, r, h.Offset)
		}
		return source.ReadUntil(ctx, r), err
	}), err
}

// idxField returns the field of a file. Rank 3 of bytes is gray images, which get a channel axis; rank 1 of bytes
// is class numbers, which become int64 like all labels.
func idxField(h Header, name string) (source.Field, Fixed, error) {
	f, _, err := h.field(layout.FieldName(strings.TrimSuffix(name, ".gz")), name)
	if err != nil {
		return f, Fixed{}, err
	}
	layout := h.layout(f)
	switch {
	case h.DType == tensor.Uint8 && len(f.Shape) == 2:
		f = source.NumberField(source.ImagesName, tensor.Uint8, 1, f.Shape[0], f.Shape[1])
		f.Layout = tensor.CHW
	case h.DType == tensor.Uint8 && len(f.Shape) == 0:
		f = source.NumberField(source.LabelsName, tensor.Int64)
		layout.convert = Widened
	}
	f.Origin = name
	return f, layout, nil
}
