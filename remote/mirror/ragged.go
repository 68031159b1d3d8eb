package mirror

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// field is a field as windows.
type field struct {
	spec    tensor.Spec
	rows    *window // of records; of values where it is ragged
	offsets *window // nil where it is not
	runs    []run
}

// run is the records of one extent of a ragged field.
type run struct {
	first, count int64 // records
	offset       int64 // row of the first one's offset in the window of offsets
	row, rows    int64 // of the values
}

func (d *Dataset) newField(i int, spec tensor.Spec) field {
	f := field{spec: spec}
	for k := range d.windows {
		w := &d.windows[k]
		switch {
		case w.meta.Field != i:
		case w.meta.Part == store.Offsets:
			f.offsets = w
		default:
			f.rows = w
		}
	}
	if f.offsets == nil {
		return f
	}
	first := int64(0)
	for k, e := range f.offsets.meta.Extents {
		values := f.rows.meta.Extents[k]
		f.runs = append(f.runs, run{first, e.Count - 1, e.First, values.First, values.Count})
		first += e.Count - 1
	}
	return f
}

func (f *field) run(record int64) *run {
	return &f.runs[sort.Search(len(f.runs), func(k int) bool { return f.runs[k].first > record })-1]
}

// rowSpan is where a record's rows are in the values.
type rowSpan struct{ row, n int64 }

// places returns the rows of records, whose offsets are fetched, and stay until the end of the
// use.
func (d *Dataset) places(ctx context.Context, f *field, indices []int) (list []rowSpan, u *use, err error) {
	var ranges []blocks
	for _, i := range indices {
		if err := d.checkRange(i, i+1); err != nil {
			return nil, nil, err
		}
		r := f.run(int64(i))
		at := r.offset + int64(i) - r.first
		ranges = f.offsets.ranges(ranges, r.offset, r.offset+1)
		ranges = f.offsets.ranges(ranges, at, at+2)
	}
	if u, err = d.ensure(ctx, ranges); err != nil {
		return nil, nil, err
	}
	for _, i := range indices {
		p, err := d.place(f, u, int64(i))
		if err != nil {
			u.end()
			return nil, nil, err
		}
		list = append(list, p)
	}
	return list, u, nil
}

func (d *Dataset) place(f *field, use *use, i int64) (rowSpan, error) {
	r := f.run(i)
	at := r.offset + i - r.first
	var buf [24]byte
	if err := d.copyRows(f.offsets, use, r.offset, r.offset+1, buf[:8]); err != nil {
		return rowSpan{}, err
	}
	if err := d.copyRows(f.offsets, use, at, at+2, buf[8:]); err != nil {
		return rowSpan{}, err
	}
	base, from, to := int64(binary.LittleEndian.Uint64(buf[:])), int64(binary.LittleEndian.Uint64(buf[8:])), int64(binary.LittleEndian.Uint64(buf[16:]))
	if base < 0 || from < base || to < from || to-base > r.rows {
		return rowSpan{}, fmt.Errorf("mirror: %s: record %d: field %q: its offsets %d to %d are impossible: %w", d.name, i, f.spec.Name, from, to, store.ErrCorrupt)
	}
	return rowSpan{r.row + from - base, to - from}, nil
}

// ragged returns a field of records with lengths of their own.
func (d *Dataset) ragged(name string) (*field, error) {
	f, err := d.field(name)
	if err == nil && f.offsets == nil {
		err = fmt.Errorf("mirror: field %q: its records are all of one length; use Run or Gather", name)
	}
	return f, err
}

// ensureRecords is ensure for records [a, b) of any field.
func (d *Dataset) ensureRecords(ctx context.Context, f *field, a, b int) (*use, error) {
	if f.offsets == nil {
		return d.ensure(ctx, f.rows.ranges(nil, int64(a), int64(b)))
	}
	places, offsets, err := d.places(ctx, f, span(a, b))
	if err != nil {
		return nil, err
	}
	offsets.end()
	return d.ensure(ctx, f.valueRanges(places))
}

func (f *field) valueRanges(places []rowSpan) (ranges []blocks) {
	for _, p := range places {
		ranges = f.rows.ranges(ranges, p.row, p.row+p.n)
	}
	return ranges
}

func span(a, b int) []int {
	list := make([]int, b-a)
	for i := range list {
		list[i] = a + i
	}
	return list
}

// Lengths fills offsets with where the records start when their rows lie one after the other.
func (d *Dataset) Lengths(ctx context.Context, name string, indices []int, offsets []int64) error {
	if d.whole.Load() {
		return d.local.Lengths(ctx, name, indices, offsets)
	}
	r, err := d.lengths(ctx, name, indices, offsets)
	if err == nil {
		r.ends.end()
	}
	return err
}

// raggedRead is records of a ragged field that are about to be read.
type raggedRead struct {
	f      *field
	places []rowSpan
	ends   *use // of the offsets
	rows   *use
}

func (r *raggedRead) end() {
	r.ends.end()
	r.rows.end()
}

// here reports whether all that is read is in the mirror, and nothing held.
func (r *raggedRead) here() bool {
	return len(r.ends.held) == 0 && len(r.rows.held) == 0 && r.f.rows.packed == nil
}

func (d *Dataset) lengths(ctx context.Context, name string, indices []int, offsets []int64) (*raggedRead, error) {
	f, err := d.ragged(name)
	if err != nil {
		return nil, err
	}
	if len(offsets) != len(indices)+1 {
		panic("mirror: offsets has not one element more than there are indices")
	}
	places, ends, err := d.places(ctx, f, indices)
	if err != nil {
		return nil, err
	}
	offsets[0] = 0
	for k, p := range places {
		offsets[k+1] = offsets[k] + p.n
	}
	return &raggedRead{f: f, places: places, ends: ends}, nil
}

// read has the rows of records in the mirror, or held.
func (d *Dataset) read(ctx context.Context, name string, indices []int, offsets []int64) (*raggedRead, error) {
	r, err := d.lengths(ctx, name, indices, offsets)
	if err != nil {
		return nil, err
	}
	if r.f.rows.packed != nil {
		r.rows = &use{d: d} // see readRuns
		return r, nil
	}
	if r.rows, err = d.ensure(ctx, r.f.valueRanges(r.places)); err != nil {
		r.ends.end()
		return nil, err
	}
	return r, nil
}

// SliceRagged returns the rows of records [a, b) of a ragged field, and their offsets.
func (d *Dataset) SliceRagged(name string, a, b int, offsets []int64) (tensor.View, error) {
	if d.whole.Load() {
		if v, err := d.local.SliceRagged(name, a, b, offsets); !d.mends(err) {
			return v, err
		}
	}
	if err := d.checkRange(a, b); err != nil {
		return tensor.View{}, err
	}
	r, err := d.read(d.ctx, name, span(a, b), offsets)
	if err != nil {
		return tensor.View{}, err
	}
	defer r.end()
	if r.here() && d.fits {
		return d.local.SliceRagged(name, a, b, offsets)
	}
	dst := make([]byte, offsets[b-a]*r.f.rows.size)
	if err := d.copyPlaces(d.ctx, r, dst); err != nil {
		return tensor.View{}, err
	}
	rows := r.f.spec
	rows.Ragged = false
	return tensor.Of(rows, int(offsets[b-a]), dst), nil
}

// GatherRagged copies the rows of records to the start of dst, which it returns, cut or grown
// to their length.
func (d *Dataset) GatherRagged(ctx context.Context, name string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	if d.whole.Load() {
		out, err := d.local.GatherRagged(ctx, name, indices, offsets, dst)
		if !d.mends(err) {
			return out, err
		}
	}
	r, err := d.read(ctx, name, indices, offsets)
	if err != nil {
		return dst, err
	}
	defer r.end()
	if r.here() {
		return d.local.GatherRagged(ctx, name, indices, offsets, dst)
	}
	need := int(offsets[len(indices)] * r.f.rows.size)
	dst = slices.Grow(dst[:0], need)[:need]
	return dst, d.copyPlaces(ctx, r, dst)
}

func (d *Dataset) copyPlaces(ctx context.Context, r *raggedRead, dst []byte) error {
	w := r.f.rows
	if w.packed != nil {
		var runs []chunk.Run
		to := int64(0)
		for _, p := range r.places {
			runs = w.runs(runs, p.row, p.row+p.n, to)
			to += p.n
		}
		return d.readRuns(ctx, w, runs, dst, nil)
	}
	for _, p := range r.places {
		n := p.n * w.size
		if err := d.copyRows(w, r.rows, p.row, p.row+p.n, dst[:n]); err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}
