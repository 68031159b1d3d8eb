package fill

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/tensor"
)

// gatherRagged gathers all ragged fields that are not views. An error names the record, so that
// repair can replace it.
func (r *reader) gatherRagged(ctx context.Context, b *Batch) *Error {
	for f := range r.plan.Fields {
		fd := &r.plan.Fields[f]
		switch {
		case !fd.Ragged || b.viewing[f]:
		case fd.Grown():
			join := r.joinRows
			if fd.Padding != nil {
				join = r.padRows
			}
			if err := join(b, f); err != nil {
				return &Error{Field: f, Record: -1, Err: err}
			}
		default:
			if err := r.rows(ctx, b, f); err != nil {
				return r.locate(ctx, b, f, 0, len(b.indices), err)
			}
		}
	}
	return nil
}

// probeRagged reads the ragged fields of place i and drops the bytes. A replacement record must be
// readable in these fields too, although gatherRagged copies them only when the records of all
// places are settled.
func (r *reader) probeRagged(ctx context.Context, b *Batch, i int) error {
	for f := range r.plan.Fields {
		if r.plan.Fields[f].Ragged && !r.plan.Fields[f].Grown() {
			if err := r.probe(ctx, f, b.indices[i]); err != nil {
				return r.locate(ctx, b, f, i, i+1, err)
			}
		}
	}
	return nil
}

// rows gathers the rows of field f into memory of the batch, the Ring or the caller. Memory that
// GatherRagged had to grow is kept for the next batch, unless the caller owns it.
func (r *reader) rows(ctx context.Context, b *Batch, f int) (err error) {
	defer r.guard.catch(&err)
	fd := &r.plan.Fields[f]
	r.progress.set(b.slot, f, -1)
	r.watch.begin()
	offsets := b.offsets[f][:len(b.indices)+1]
	dst, err := r.plan.rowsFor(ctx, b, f, offsets)
	if err != nil {
		return err
	}
	dst, err = r.plan.Source.Ragged.GatherRagged(ctx, fd.In.Name, b.indices, offsets, dst)
	if err != nil {
		return err
	}
	if b.own == nil {
		b.rows[f] = dst
	}
	b.views[f] = tensor.Of(fd.In, int(offsets[len(b.indices)]), dst)
	r.watch.read(r.watch.lap(), b.indices, len(dst))
	return nil
}

// joinRows concatenates the rows that a function wrote for each place of field f. The function
// writes to separate memory first: the place of a record's rows depends on the lengths of all
// records before it, and several workers may fill the first batch.
func (r *reader) joinRows(b *Batch, f int) error {
	fd := &r.plan.Fields[f]
	size, n := fd.Out.RecordBytes(), len(b.indices)
	offsets := b.offsets[f][:n+1]
	offsets[0] = 0
	for i, rows := range b.made[f][:n] {
		offsets[i+1] = offsets[i] + int64(len(rows)/size)
	}
	dst, err := r.plan.room(b, f, int(offsets[n])*size)
	if err != nil {
		return err
	}
	at := dst[:0]
	for _, rows := range b.made[f][:n] {
		at = append(at, rows...)
	}
	if b.own == nil {
		b.rows[f] = at
	}
	b.views[f] = tensor.Of(fd.Out, int(offsets[n]), at)
	return nil
}

// padRows builds the array of a padded field from the records that a function made. The array's
// size is known only now, when every image of the batch has its size.
func (r *reader) padRows(b *Batch, f int) error {
	fd, n := &r.plan.Fields[f], len(b.indices)
	p, sizes := fd.Padding, b.buffer(fd.Padding.Sizes)
	height, width := p.largest(sizes, n)
	spec := fd.Out
	spec.Shape = p.shape(height, width)
	planes, elements := p.planes()
	pixel := elements * spec.DType.Size()
	rows := n
	if p.Instances {
		offsets := b.offsets[f][:n+1]
		offsets[0] = 0
		for i, record := range b.made[f][:n] {
			h, w := sizeAt(sizes, i)
			offsets[i+1] = offsets[i] + int64(len(record)/(h*w*planes*pixel))
		}
		rows = int(offsets[n])
	}
	need := rows * spec.RecordBytes()
	dst, err := r.plan.room(b, f, need)
	if err != nil {
		return err
	}
	if cap(dst) < need {
		dst = make([]byte, need)
	}
	dst = dst[:need]
	at := dst
	for i, record := range b.made[f][:n] {
		h, w := sizeAt(sizes, i)
		for ; len(record) > 0; record = record[h*w*pixel:] {
			padPlane(at, record, [2]int{h, w * pixel}, [2]int{height, width * pixel}, p.Value)
			at = at[height*width*pixel:]
		}
	}
	if b.own == nil {
		b.rows[f] = dst
	}
	b.views[f] = tensor.Of(spec, rows, dst)
	return nil
}

// rowsFor returns memory for the rows of field f. In the usual case that is the memory of earlier
// batches, and GatherRagged grows it on the Go heap. Memory of the caller, the Ring or a Budget
// cannot grow like that: then the lengths are read first.
func (p *Plan) rowsFor(ctx context.Context, b *Batch, f int, offsets []int64) ([]byte, error) {
	dst := b.rows[f]
	if b.own == nil && p.Budget == 0 && !p.RingRows {
		return dst, nil
	}
	fd := &p.Fields[f]
	if err := p.Source.Ragged.Lengths(ctx, fd.In.Name, b.indices, offsets); err != nil {
		return nil, err
	}
	return p.room(b, f, int(offsets[len(b.indices)])*fd.Stored)
}

// room is rowsFor for a known number of bytes.
func (p *Plan) room(b *Batch, f, need int) ([]byte, error) {
	dst := b.rows[f]
	if b.own == nil && p.Budget == 0 && !p.RingRows {
		return dst, nil
	}
	switch {
	case b.own != nil && need > len(b.own[f]):
		return nil, fmt.Errorf("the rows of the batch have %d bytes, and there is memory for %d", need, len(b.own[f]))
	case b.own != nil:
		return b.own[f], nil
	}
	if err := p.fits(b, f, need); err != nil || !p.RingRows {
		return dst, err
	}
	b.rows[f] = nil // it may be freed now
	return p.Ring.Grow(b.slot, f, max(1, need))
}

// fits returns an error if rows of need bytes exceed what Budget leaves for one batch, after its
// fixed fields and its other ragged fields.
func (p *Plan) fits(b *Batch, f, need int) error {
	if p.Budget == 0 {
		return nil
	}
	if p.RingRows {
		need = memory.WholePages(max(1, need))
	}
	left := p.Budget/p.Slots - p.Ring.Stride()
	for other, rows := range b.rows {
		if other != f {
			left -= cap(rows)
		}
	}
	if need > left {
		return fmt.Errorf("the rows of the batch have %d bytes, and the limit of memory leaves %d for each of %d batches; make "+
			"batches smaller, or the limit larger", need, left, p.Slots)
	}
	return nil
}
