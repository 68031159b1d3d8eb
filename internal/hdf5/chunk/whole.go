package chunk

import (
	"context"
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// ChunkShape returns the elements of a chunk along each axis, records first, and the bytes of an element; nil
// for data that has no chunks.
func (r *Reader) ChunkShape() (shape []int64, element int64) {
	if r.data.flat {
		return nil, 0
	}
	return r.data.grid.chunk, r.data.grid.elem
}

// StoredChunk returns where the bytes of a chunk are in the file; size is 0 if it was never written, or is elsewhere.
func (r *Reader) StoredChunk(place int64) (offset, size int64) {
	d := r.data
	if d.outside != nil || place < 0 || place >= d.grid.rows*d.grid.columns {
		return 0, 0
	}
	s, _ := d.find(place)
	return s.offset, s.size
}

// Chunk decodes the chunk at a place of the grid, in which they are counted row by row, to dst, which has its size.
// Elements beyond the end of the array are whatever was stored. It neither looks into the cache nor fills it.
func (r *Reader) Chunk(ctx context.Context, dst []byte, place int64) (err error) {
	d := r.data
	if place < 0 || place >= d.grid.rows*d.grid.columns {
		return fmt.Errorf("hdf5: dataset %q: chunk %d of %d does not exist", d.path, place, d.grid.rows*d.grid.columns)
	}
	if len(dst) != d.grid.size {
		panic("hdf5: Chunk: dst has not the size of a chunk")
	}
	w := <-d.pool.workers
	defer func(before bool) {
		debug.SetPanicOnFault(before)
		d.pool.workers <- w
		if p := recover(); p != nil {
			err = d.faulted(place, p)
		}
	}(debug.SetPanicOnFault(true))
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.outside != nil {
		written, err := d.decodeArray(ctx, w, place, func() []byte { return dst })
		if err != nil {
			return fmt.Errorf("%s: %s: %w", d.path, d.outside.Name(place), err)
		}
		if !written {
			repeat(dst, d.fill)
		}
		return nil
	}
	s, ok := d.find(place)
	if !ok {
		repeat(dst, d.fill)
		return nil
	}
	switch plain := d.filter.plain(s.mask); {
	case plain && s.size != int64(d.grid.size):
		err = fmt.Errorf("%d bytes that went through no filter, the chunk has %d: %w", s.size, d.grid.size, meta.ErrCorrupt)
	case !plain && !d.filter.possible(s.size):
		err = fmt.Errorf("no chunk of %d bytes is stored as so few: %w", d.grid.size, meta.ErrCorrupt)
	default:
		err = d.decode(w, dst, s)
	}
	if err != nil {
		return d.failed(s, err)
	}
	return nil
}

// faulted makes an error of a fault in the mapping; any other panic goes on.
func (d *dataset) faulted(place int64, p any) error {
	fault, ok := p.(interface{ Addr() uintptr })
	if mapped := d.src.mapped; ok && len(mapped) > 0 &&
		fault.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(mapped))) < uintptr(len(mapped)) {
		s, _ := d.find(place)
		return d.failed(s, cut(s.offset, s.size))
	}
	panic(p)
}
