package array

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// mostHeader is the longest header in bytes that the safetensors library itself reads.
const mostHeader = 100_000_000

// tensorTypes has the element types of https://github.com/huggingface/safetensors that fields can have.
var tensorTypes = map[string]tensor.DType{
	"BOOL": tensor.Bool, "U8": tensor.Uint8, "I8": tensor.Int8, "U16": tensor.Uint16, "I16": tensor.Int16,
	"U32": tensor.Uint32, "I32": tensor.Int32, "U64": tensor.Uint64, "I64": tensor.Int64,
	"F16": tensor.Float16, "BF16": tensor.BFloat16, "F32": tensor.Float32, "F64": tensor.Float64,
}

// OpenSafetensors opens a file of safetensors. Each tensor is a field.
func OpenSafetensors(ctx context.Context, root *vfs.Root, path string, _ source.Options, selection []column.Selection) (
	source.Source, error) {
	all, bad, closer, err := Safetensors(ctx, root, path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return named("safetensors", path, all, bad, selection, closer, root)
}

// Safetensors returns the tensors of a file sorted by name, including tensors without axes, and the closer of the
// file.
func Safetensors(ctx context.Context, root *vfs.Root, path string) (columns []Column, bad Rejections, _ io.Closer,
	err error) {
	f, size, err := source.OpenSized(ctx, root, path)
	if err != nil {
		return nil, nil, nil, err
	}
	if columns, bad, err = tensorsOf(f, size); err != nil {
		return nil, nil, nil, errors.Join(source.WithoutPath(err), f.Close())
	}
	return columns, bad, f, nil
}

// tensorEntry is the header's entry of a tensor. Offsets are bytes from the end of the header.
type tensorEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// tensorsOf reads the header of a file: its length as a little-endian uint64, then a JSON object with type, shape
// and place of each tensor (https://github.com/huggingface/safetensors). The length is untrusted and is compared
// with the size of the file before memory is allocated for it. Tensors are sorted by name, as JSON objects have no
// order.
func tensorsOf(r io.ReaderAt, size int64) (columns []Column, bad Rejections, err error) {
	var length [8]byte
	if err := source.ReadAt(r, length[:], 0); err != nil {
		return nil, nil, CutShort(err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > mostHeader || int64(n) > size-8 {
		return nil, nil, fmt.Errorf("is no file of safetensors: its header would have %d bytes", n)
	}
	text := make([]byte, n)
	if err := source.ReadAt(r, text, 8); err != nil {
		return nil, nil, CutShort(err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, nil, fmt.Errorf("is no file of safetensors: header: %w", err)
	}
	// The only key that is no tensor: free text of the writer.
	delete(entries, "__metadata__")
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		c, err := tensorColumn(r, name, entries[name], 8+int64(n), size)
		if err != nil {
			bad = append(bad, Rejection{name, err})
			continue
		}
		columns = append(columns, c)
	}
	return columns, bad, nil
}

// tensorColumn returns the column of a tensor. first is the position of the data section in the file and size the
// size of the file.
func tensorColumn(r io.ReaderAt, name string, text []byte, first, size int64) (Column, error) {
	var e tensorEntry
	if err := json.Unmarshal(text, &e); err != nil {
		return Column{}, fmt.Errorf("header: %w", err)
	}
	dtype, ok := tensorTypes[e.DType]
	if !ok {
		return Column{}, fmt.Errorf("type %s is not one of numbers that fields have", e.DType)
	}
	// Each axis is limited before field multiplies them.
	for _, axis := range e.Shape {
		if axis < 0 || axis > 1<<40 {
			return Column{}, fmt.Errorf("axis of %d elements", axis)
		}
	}
	h, single := Header{DType: dtype, Shape: e.Shape, Offset: first + e.Offsets[0]}.single()
	field, count, err := h.field(layout.FieldName(name), name)
	if err != nil {
		return Column{}, err
	}
	need := count * int64(field.RecordBytes())
	// The file stores both ends of a tensor although the shape implies its size: they must agree.
	if e.Offsets[0] < 0 || e.Offsets[1] > size-first || e.Offsets[1]-e.Offsets[0] != need {
		return Column{}, fmt.Errorf("bytes %d to %d of %d are not the %d of its shape", e.Offsets[0], e.Offsets[1],
			size-first, need)
	}
	c := h.layout(field).column(field, count, r, h.Offset)
	c.Single = single
	return c, nil
}
