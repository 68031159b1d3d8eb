package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/store"
)

// readBox returns the elements of a field within a box, in C order. edges has the first element and
// the end along each axis, records first. Of a chunked field it decodes only the chunks that the
// box touches; of any other field it reads whole records and cuts them.
func readBox(ctx context.Context, ds recordSource, fields []store.Field, edges []int) ([]byte, error) {
	if len(fields) != 1 {
		return nil, fmt.Errorf("a box of %d fields", len(fields))
	}
	f, field := fields[0], fields[0].Name
	dims := append([]int{ds.Len()}, f.Shape...)
	if f.Ragged || len(edges) != 2*len(dims) {
		return nil, fmt.Errorf("field %q: a box of %d edges", field, len(edges))
	}
	box := make([][2]int, len(dims))
	for k := range box {
		b := [2]int{edges[2*k], edges[2*k+1]}
		if b[0] < 0 || b[0] > b[1] || b[1] > dims[k] {
			return nil, fmt.Errorf("field %q: elements %v of %d along axis %d", field, b, dims[k], k)
		}
		box[k] = b
	}
	to := newBlock(box, f.DType.Size())
	if len(to.data) == 0 {
		return to.data, nil
	}
	shape := ds.ChunkShape(field)
	if shape == nil {
		rows := make([]int, box[0][1]-box[0][0])
		for k := range rows {
			rows[k] = box[0][0] + k
		}
		whole := make([][2]int, len(dims))
		for k, n := range dims {
			whole[k] = [2]int{0, n}
		}
		whole[0] = box[0]
		from := newBlock(whole, f.DType.Size())
		err := ds.Gather(ctx, field, rows, from.data)
		to.copy(from)
		return to.data, err
	}
	at := make([]int, len(dims))
	for k := range at {
		at[k] = box[k][0] / shape[k]
	}
	limits := make([][2]int, len(dims))
	for k, n := range shape {
		limits[k] = [2]int{0, n}
	}
	chunk := newBlock(limits, f.DType.Size())
	for {
		if err := ds.ReadChunk(ctx, field, at, chunk.data); err != nil {
			return nil, err
		}
		for k := range at {
			chunk.limits[k] = [2]int{at[k] * shape[k], (at[k] + 1) * shape[k]}
		}
		to.copy(chunk)
		k := len(at) - 1
		for ; k >= 0; k-- { // the next one, as the digits of a number
			if at[k]++; at[k]*shape[k] < box[k][1] {
				break
			}
			at[k] = box[k][0] / shape[k]
		}
		if k < 0 {
			return to.data, nil
		}
	}
}

// block is a box of elements of an array.
type block struct {
	limits [][2]int // [first, end) along each axis
	data   []byte
	size   int // bytes of an element
}

// newBlock returns a block of zeros.
func newBlock(limits [][2]int, size int) *block {
	n := size
	for _, l := range limits {
		n *= l[1] - l[0]
	}
	return &block{slices.Clone(limits), make([]byte, n), size}
}

// copy copies the elements that lie in both b and from.
func (b *block) copy(from *block) { b.copyAxis(from, 0, 0, 0) }

// copyAxis copies along axes k and later. to and at are the numbers of the first element in b and
// in from, along the axes before k. The last axis is copied as one run.
func (b *block) copyAxis(from *block, k, to, at int) {
	if k == len(b.limits) {
		copy(b.data[to*b.size:(to+1)*b.size], from.data[at*b.size:])
		return
	}
	first, end := max(b.limits[k][0], from.limits[k][0]), min(b.limits[k][1], from.limits[k][1])
	to = to*(b.limits[k][1]-b.limits[k][0]) + first - b.limits[k][0]
	at = at*(from.limits[k][1]-from.limits[k][0]) + first - from.limits[k][0]
	if k == len(b.limits)-1 {
		if first < end {
			copy(b.data[to*b.size:(to+end-first)*b.size], from.data[at*b.size:])
		}
		return
	}
	for i := range end - first {
		b.copyAxis(from, k+1, to+i, at+i)
	}
}
