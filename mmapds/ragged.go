package mmapds

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// field is a field as mapped memory.
type field struct {
	spec    tensor.Spec
	rows    *column // of records; of values where it is ragged
	offsets *column // nil where it is not
	index   layout.RaggedIndex
	extents []raggedExtent // those of index
}

// raggedExtent is one of a ragged field, with its offsets.
type raggedExtent struct {
	*layout.RaggedExtent
	offsets []byte // of each record and of the last one's end
	segment *segment
	at      int // of offsets in the segment
}

func (d *arrays) newField(i int, spec tensor.Spec) field {
	f := field{spec: spec}
	for k := range d.columns {
		c := &d.columns[k]
		switch {
		case c.meta.Field != i:
		case c.meta.Part == layout.Offsets:
			f.offsets = c
		default:
			f.rows = c
		}
	}
	if f.offsets == nil {
		return f
	}
	f.index = layout.NewRaggedIndex(f.offsets.meta, f.rows.meta)
	for k := range f.index.Extents {
		e := &f.index.Extents[k]
		s, at := f.offsets.find(int(e.Offset))
		f.extents = append(f.extents, raggedExtent{e, s.data[at : at+8*int(e.Count+1)], s, at})
	}
	return f
}

// SliceRagged returns records [a, b) of a ragged field: their rows, back to back, as one array
// of shape (rows, row shape...), and in offsets, which has b-a+1 elements, where each record
// starts in it and where the last one ends. offsets[0] is 0, so it is what attention kernels
// call cu_seqlens, in rows.
//
// It reads the offsets and no values. The view is valid until Close; where the run crosses
// shards, it is a copy.
func (d *Dataset) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	f, err := d.ragged(field, a, b)
	if err != nil {
		return tensor.View{}, err
	}
	if len(offsets) != b-a+1 {
		panic("mmapds: SliceRagged: offsets has not one element more than there are records")
	}
	if !d.fetches() {
		if v, err := d.runRagged(f, a, b, offsets); !d.distrusts(err) {
			return v, err
		}
	}
	return d.fetchRagged(context.Background(), f, a, b, offsets)
}

// runRagged is SliceRagged for records that are in the files.
func (d *arrays) runRagged(f *field, a, b int, offsets []int64) (tensor.View, error) {
	row, err := d.place(f, a, b, offsets)
	if err != nil {
		return tensor.View{}, err
	}
	return d.runLocal(f.rows, row, row+int(offsets[b-a]))
}

// Lengths fills offsets, which has one element more than indices, with where the records of
// a ragged field start when their rows are one after the other: what GatherRagged will give,
// before it is done. It allocates nothing.
func (d *Dataset) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	f, err := d.ragged(field, 0, 0)
	if err != nil {
		return err
	}
	if len(offsets) != len(indices)+1 {
		panic("mmapds: offsets has not one element more than there are indices")
	}
	if d.fetches() {
		_, err := d.fetchLengths(ctx, f, indices, offsets)
		return err
	}
	offsets[0] = 0
	for k, i := range indices {
		if k%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if next := k + raggedAhead; next < len(indices) {
			f.load(indices[next])
		}
		_, n, err := d.record(f, i)
		if err != nil {
			return err
		}
		offsets[k+1] = offsets[k] + int64(n)
	}
	return nil
}

// GatherRagged copies the rows of records indices, in that order, to the start of dst and
// returns it, cut or grown to their length. Offsets, which has one element more than
// indices, gets where each record starts in it, in rows, and where the last one ends.
// Indices may come in any order and repeat. It allocates nothing where dst has the capacity.
func (d *Dataset) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	if !d.fetches() {
		out, err := d.gatherRagged(ctx, field, indices, offsets, dst)
		if !d.distrusts(err) {
			return out, err
		}
	}
	f, err := d.ragged(field, 0, 0)
	if err != nil {
		return dst, err
	}
	if len(offsets) != len(indices)+1 {
		panic("mmapds: offsets has not one element more than there are indices")
	}
	return d.fetchGatherRagged(ctx, f, indices, offsets, dst)
}

// gatherRagged is GatherRagged for records that are in the files.
func (d *Dataset) gatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	if err := d.Lengths(ctx, field, indices, offsets); err != nil {
		return dst, err
	}
	f, err := d.ragged(field, 0, 0)
	if err != nil {
		return dst, err
	}
	need := int(offsets[len(indices)]) * f.rows.size
	dst = slices.Grow(dst[:0], need)[:need]
	if f.rows.packed != nil {
		return dst, d.gatherRuns(ctx, f, indices, offsets, dst)
	}
	if err := d.askRows(f, indices); err != nil {
		return dst, err
	}
	return dst, d.copyRecords(ctx, f, indices, offsets, dst)
}

// copyRecords is GatherRagged for values that are mapped, and asked for.
func (d *arrays) copyRecords(ctx context.Context, f *field, indices []int, offsets []int64, dst []byte) error {
	var rows [raggedAhead]int // of records whose values are under way to the cache
	find := func(k int) (err error) {
		if k < len(indices) {
			rows[k%raggedAhead], err = d.sameRow(f, indices[k], int(offsets[k+1]-offsets[k]))
		}
		return err
	}
	for k := range raggedAhead {
		if err := find(k); err != nil {
			return err
		}
	}
	for k := range indices {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, a, b := rows[k%raggedAhead], int(offsets[k]), int(offsets[k+1])
		if err := d.copyRun(f.rows, row, row+b-a, dst[a*f.rows.size:b*f.rows.size]); err != nil {
			return err
		}
		if err := find(k + raggedAhead); err != nil {
			return err
		}
	}
	return nil
}

// sameRow returns the first row of a record that had n rows a moment ago, and begins to load it to
// the cache.
func (d *arrays) sameRow(f *field, i, n int) (row int, err error) {
	row, now, err := d.record(f, i)
	if err == nil && now != n {
		err = fmt.Errorf("mmapds: record %d: field %q: its offsets changed while they were read: %w", i, f.spec.Name, store.ErrCorrupt)
	}
	if err == nil && n > 0 && f.rows.packed == nil {
		s, at := f.rows.find(row)
		kernel.Prefetch(s.data[at:min(at+min(n*f.rows.size, prefetchRow), len(s.data))])
	}
	return row, err
}

// askRows starts to read the rows of records.
func (d *arrays) askRows(f *field, indices []int) error {
	var w wants
	defer w.send()
	for _, i := range indices {
		row, n, err := d.record(f, i)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		s, at := f.rows.find(row)
		if end := min(at+n*f.rows.size, len(s.data)); !s.warm.has(at, end) {
			f.rows.want(&w, s, at, end)
		}
	}
	return nil
}

// gatherRuns is GatherRagged for values that are packed: each chunk is inflated once for all
// records that are asked for.
func (d *arrays) gatherRuns(ctx context.Context, f *field, indices []int, offsets []int64, dst []byte) error {
	p, size := f.rows.packed, f.rows.size
	s := p.borrow()
	defer p.giveBack(s)
	for k, i := range indices {
		row, err := d.sameRow(f, i, int(offsets[k+1]-offsets[k]))
		if err != nil {
			return err
		}
		s.rows = append(s.rows, row)
	}
	if err := p.gatherRuns(ctx, s.rows, offsets, dst); err != nil || f.rows.sums == nil {
		return err
	}
	for k, row := range s.rows {
		a, b := int(offsets[k]), int(offsets[k+1])
		if err := d.checkPacked(f.rows, row, row+b-a, dst[a*size:b*size]); err != nil {
			return err
		}
	}
	return nil
}

// ragged returns a ragged field of which records [a, b) exist.
func (d *Dataset) ragged(name string, a, b int) (*field, error) {
	f, err := d.field(name)
	if err != nil {
		return nil, err
	}
	if f.offsets == nil {
		return nil, fmt.Errorf("mmapds: field %q: its records are all of one length; use Run or Gather", name)
	}
	return f, checkRange(name, a, b, d.Len())
}

// rowsOf returns the array of a field and the rows that records [a, b) have in it.
func (d *Dataset) rowsOf(name string, a, b int) (c *column, from, to int, err error) {
	f, err := d.field(name)
	if err != nil {
		return nil, 0, 0, err
	}
	if err := checkRange(name, a, b, d.Len()); err != nil {
		return nil, 0, 0, err
	}
	from, to, err = d.rowsIn(f, a, b)
	return f.rows, from, to, err
}

// rowsIn returns the rows that records [a, b) of a field, which exist, have.
func (d *arrays) rowsIn(f *field, a, b int) (from, to int, err error) {
	if f.offsets == nil || a == b {
		return a, b, nil
	}
	from, _, err = d.record(f, a)
	if err != nil {
		return 0, 0, err
	}
	last, n, err := d.record(f, b-1)
	return from, last + n, err
}

// record returns the first row of a record in the values and how many it has.
func (d *arrays) record(f *field, i int) (row, n int, err error) {
	if err := checkRange(f.spec.Name, i, i+1, d.len()); err != nil {
		return 0, 0, err
	}
	var offsets [2]int64
	row, err = d.place(f, i, i+1, offsets[:])
	return row, int(offsets[1]), err
}

// raggedAhead is how many records before its turn a record's offsets, and then its values, are asked
// for from memory.
const raggedAhead = 8

// load begins to load the offsets of a record to the cache, if it exists.
func (f *field) load(i int) {
	k := f.index.Find(int64(i))
	if k < 0 || int64(i)-f.extents[k].First >= f.extents[k].Count {
		return
	}
	at := 8 * (int64(i) - f.extents[k].First)
	kernel.Prefetch(f.extents[k].offsets[at : at+16])
}

// place fills offsets with those of records [a, b), from 0 on, and returns the first
// record's row in the values. Offsets that run backwards or past the values are ErrCorrupt.
func (d *arrays) place(f *field, a, b int, offsets []int64) (row int, err error) {
	defer d.catch(&err, debug.SetPanicOnFault(true))
	offsets[0] = 0
	if a == b {
		return 0, nil
	}
	k := f.index.Find(int64(a))
	for at, first := a, true; at < b; k, first = k+1, false {
		e := &f.extents[k]
		n := min(b, int(e.First+e.Count)) - at
		start, err := d.placeIn(f, e, at-int(e.First), offsets[at-a:at-a+n+1])
		if err != nil {
			return 0, err
		}
		if first {
			row = start
		}
		at += n
	}
	return row, nil
}

// placeIn does so for records of one extent, the first of which is number i there; out[0] is
// where it starts among those that are asked for.
func (d *arrays) placeIn(f *field, e *raggedExtent, i int, out []int64) (row int, err error) {
	n := len(out) - 1
	for _, r := range [2][2]int{{0, 1}, {i, i + n + 1}} { // the base, and what is asked for
		if err := d.ready(f.offsets, e.segment, e.at+8*r[0], e.at+8*r[1]); err != nil {
			return 0, err
		}
	}
	w, err := e.Walk(int64(i), e.offset(0), e.offset(i))
	if err != nil {
		return 0, f.corrupt(err)
	}
	row = int(e.Row + w.Row())
	for k := 1; k <= n; k++ {
		rows, err := w.Next(e.offset(i + k))
		if err != nil {
			return 0, f.corrupt(err)
		}
		out[k] = out[k-1] + rows
	}
	return row, nil
}

// offset returns an offset of the extent, which must exist.
func (e *raggedExtent) offset(i int) int64 {
	return int64(binary.LittleEndian.Uint64(e.offsets[8*i:]))
}

// recordOf returns the record that has a row of the values, or one near it where the offsets
// cannot be read.
func (f *field) recordOf(row int) (record int) {
	e := &f.extents[f.index.FindRow(int64(row))]
	record = int(e.First)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	base := e.offset(0)
	return record + sort.Search(int(e.Count)-1, func(i int) bool { return e.offset(i+1)-base > int64(row)-e.Row })
}
