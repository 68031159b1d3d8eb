package mmapds

import (
	"context"
	"fmt"
	"slices"
)

// ChunkShape returns how many elements a chunk of a field has along each axis, the axis of the
// records first. It is nil where whole chunks cannot stand for records: fields stored without
// chunks, splits that begin inside a chunk, fields with deleted records, and fields that WithVerify
// checks.
func (d *Dataset) ChunkShape(field string) []int {
	rows, err := d.rows(field)
	if err != nil || rows.packed == nil || rows.checks != nil || d.live != nil {
		return nil
	}
	c := rows.column
	if len(c.meta.Extents) != 1 || c.meta.Extents[0].Row != 0 {
		return nil
	}
	shape, element := rows.packed.r.ChunkShape()
	if len(shape) != 1+len(c.spec.Shape) || element != int64(c.spec.DType.Size()) {
		return nil
	}
	out := make([]int, len(shape))
	for i, n := range shape {
		out[i] = int(n)
	}
	return out
}

// ReadChunk decodes the chunk that is the at[i]-th along axis i to dst, which has the bytes of a chunk. Elements beyond
// the end of the array may be anything.
func (d *Dataset) ReadChunk(ctx context.Context, field string, at []int, dst []byte) error {
	shape := d.ChunkShape(field)
	if shape == nil || len(at) != len(shape) {
		return fmt.Errorf("mmapds: field %q has no chunk %v", field, at)
	}
	rows, err := d.rows(field)
	if err != nil {
		return err
	}
	dims := slices.Concat([]int{d.Len()}, rows.column.spec.Shape)
	place := int64(0)
	for i, n := range dims {
		chunks := (n + shape[i] - 1) / shape[i]
		if at[i] < 0 || at[i] >= chunks {
			return fmt.Errorf("mmapds: field %q has no chunk %v", field, at)
		}
		place = place*int64(chunks) + int64(at[i])
	}
	return rows.read(ctx, func() (request, error) {
		return request{need: rows.rangesOfChunk(place)}, nil
	}, func(from answer) error {
		p := from.(*packed)
		return p.wrap(p.r.Chunk(ctx, dst, place))
	})
}
