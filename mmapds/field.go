package mmapds

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"sort"
	"sync"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/tensor"
)

// field is a field of a dataset: its rows, and for a ragged field the offsets that say which rows
// each record has. mu guards idle only.
type field struct {
	spec    tensor.Spec
	records int
	stored  int     // stored records, deleted ones included; the methods below count these
	rows    *reader // of the records, or of the values of a ragged field
	offsets *reader // of a ragged field, else nil
	index   layout.RaggedIndex

	mu   sync.Mutex
	idle []*offsetScratch
}

// offsetScratch is memory that one call for a ragged field borrows and returns, so that a warm
// Gather allocates nothing.
type offsetScratch struct {
	ends [2]int
	runs []rowSpan // the rows of each record, as find sets them
	buf  [24]byte  // room for offsets that have to be copied: three of them
}

// setOffsets makes the field ragged: its records are runs of rows between offsets.
func (f *field) setOffsets(offsets *reader) {
	f.offsets = offsets
	f.index = layout.NewRaggedIndex(offsets.column.meta, f.rows.column.meta)
	f.rows.column.recordOf = f.recordOf
	column, records := offsets.column, f.stored
	// An extent has one offset more than records.
	column.recordOf = func(row int) int { return min(row-column.extent(row), records-1) }
}

// borrow returns scratch memory that no other call uses. giveBack takes it again.
func (f *field) borrow() *offsetScratch {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.idle)
	if n == 0 {
		return new(offsetScratch)
	}
	s := f.idle[n-1]
	f.idle = f.idle[:n-1]
	return s
}

func (f *field) giveBack(s *offsetScratch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = append(f.idle, s)
}

// check returns an error if records [a, b) do not all exist.
func (f *field) check(a, b int) error { return checkRange(f.spec.Name, a, b, f.records) }

// checkPlace returns an error if no record is stored at place i.
func (f *field) checkPlace(i int) error { return checkRange(f.spec.Name, i, i+1, f.stored) }

// rowsOf returns the rows of records [a, b), which exist. The offsets of the first and the last
// record are enough.
func (f *field) rowsOf(ctx context.Context, a, b int) (from, to int, err error) {
	if f.offsets == nil || a == b {
		return a, b, nil
	}
	s := f.borrow()
	defer f.giveBack(s)
	s.ends = [2]int{a, b - 1}
	if err := f.find(ctx, s.ends[:], s); err != nil {
		return 0, 0, err
	}
	return s.runs[0].row, s.runs[1].row + s.runs[1].n, nil
}

// find sets s.runs to the rows of the given records. It requests offsets some records ahead from
// memory, because the offsets of a shuffled batch are far apart.
func (f *field) find(ctx context.Context, records []int, s *offsetScratch) error {
	need := func() (request, error) { return f.requestOffsets(records) }
	return f.offsets.read(ctx, need, func(offsets answer) (err error) {
		defer catch(&err, debug.SetPanicOnFault(true), f)
		s.runs = s.runs[:0]
		for k, i := range records {
			if k%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if next := k + runsAhead; next < len(records) {
				f.load(records[next])
			}
			if err := f.checkPlace(i); err != nil {
				return err
			}
			e := &f.index.Extents[f.index.Find(int64(i))]
			var out [2]int64
			row, err := f.placeIn(offsets, e, i-int(e.First), out[:], s.buf[:])
			if err != nil {
				return err
			}
			s.runs = append(s.runs, rowSpan{row, int(out[1])})
		}
		return nil
	})
}

// place fills offsets with the offsets of records [a, b), which exist, counted from 0, and returns the first record's
// row in the values. Offsets that run backwards or past the values are ErrCorrupt.
func (f *field) place(ctx context.Context, a, b int, offsets []int64) (row int, err error) {
	offsets[0] = 0
	if a == b {
		return 0, nil
	}
	err = f.offsets.read(ctx, func() (request, error) {
		return request{need: f.offsetRanges(nil, a, b)}, nil
	}, func(from answer) (err error) {
		defer catch(&err, debug.SetPanicOnFault(true), f)
		return f.pieces(a, b, func(e *layout.RaggedExtent, at, n int) error {
			start, err := f.placeIn(from, e, at-int(e.First), offsets[at-a:at-a+n+1], nil)
			if at == a {
				row = start
			}
			return err
		})
	})
	return row, err
}

// pieces calls do with each part of records [a, b) that lies in one extent. The records must exist.
func (f *field) pieces(a, b int, do func(e *layout.RaggedExtent, at, n int) error) error {
	for k := f.index.Find(int64(a)); a < b; k++ {
		e := &f.index.Extents[k]
		n := min(b, int(e.First+e.Count)) - a
		if err := do(e, a, n); err != nil {
			return err
		}
		a += n
	}
	return nil
}

// placeIn fills out with the offsets of consecutive records of one extent; i is the number of the
// first record there. Offsets in out continue from out[0]. placeIn returns the first record's row.
// Every offset is checked against the offset before and the end of the values: offsets are bytes
// from a file, and a wrong one would read outside of the mapping.
func (f *field) placeIn(offsets answer, e *layout.RaggedExtent, i int, out []int64, buf []byte) (row int, err error) {
	n, at := len(out)-1, int(e.Offset)
	var base, rest []byte // memory for the first offset, and for those that are asked for
	if len(buf) > 8 {
		base, rest = buf[:8:8], buf[8:]
	}
	if base, err = offsets.read(at, at+1, base); err != nil {
		return 0, err
	}
	if rest, err = offsets.read(at+i, at+i+n+1, rest); err != nil {
		return 0, err
	}
	w, err := e.Walk(int64(i), offset(base, 0), offset(rest, 0))
	if err != nil {
		return 0, f.corrupt(err)
	}
	row = int(e.Row + w.Row())
	for k := 1; k <= n; k++ {
		rows, err := w.Next(offset(rest, k))
		if err != nil {
			return 0, f.corrupt(err)
		}
		out[k] = out[k-1] + rows
	}
	return row, nil
}

// offset returns the i-th of the little-endian offsets in b.
func offset(b []byte, i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }

// corrupt adds the field to an error about its offsets.
func (f *field) corrupt(err error) error { return fmt.Errorf("mmapds: field %q: %w", f.spec.Name, err) }

// requestOffsets returns the request for the offsets of records.
func (f *field) requestOffsets(records []int) (req request, err error) {
	for _, i := range records {
		if err := f.checkPlace(i); err != nil {
			return req, err
		}
		req.need = f.offsetRanges(req.need, i, i+1)
	}
	return req, nil
}

// offsetRanges appends the byte ranges of the offsets of records [a, b). The first offset of each
// extent is needed too, as offsets count from it.
func (f *field) offsetRanges(list []Range, a, b int) []Range {
	_ = f.pieces(a, b, func(e *layout.RaggedExtent, at, n int) error {
		first := int(e.Offset)
		list = f.offsets.ranges(list, first, first+1)
		first += at - int(e.First)
		list = f.offsets.ranges(list, first, first+n+1)
		return nil
	})
	return list
}

// load prefetches the offsets of record i into the CPU's cache, if the record exists.
func (f *field) load(i int) {
	k := f.index.Find(int64(i))
	if k < 0 || f.offsets.mapped == nil {
		return
	}
	if e := &f.index.Extents[k]; int64(i)-e.First < e.Count {
		f.offsets.mapped.memory.load(int(e.Offset+int64(i)-e.First), 16)
	}
}

// recordOf returns the record that contains a row of the values, or a record near it if the offsets
// cannot be read. It serves error messages, so that it must not fail itself: the offsets may lie in
// the same truncated file.
func (f *field) recordOf(row int) (record int) {
	e := &f.index.Extents[f.index.FindRow(int64(row))]
	record = int(e.First)
	if f.offsets.mapped == nil {
		return record
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	offsets := f.offsets.mapped.memory.run(int(e.Offset), int(e.Offset+e.Count+1))
	base := offset(offsets, 0)
	return record + sort.Search(int(e.Count)-1, func(i int) bool { return offset(offsets, i+1)-base > int64(row)-e.Row })
}

// fault implements faulter for the mapped memory of the field's rows and offsets.
func (f *field) fault(addr uintptr) error {
	for _, r := range []*reader{f.rows, f.offsets} {
		if r == nil || r.mapped == nil {
			continue
		}
		if err := r.mapped.memory.fault(addr); err != nil {
			return err
		}
	}
	return nil
}

// prefetch starts to read records [a, b), which exist. It waits for offsets that are in files.
// Offsets that a pager would have to fetch first are not waited for: a hint must return soon.
func (f *field) prefetch(ctx context.Context, a, b int) error {
	if f.offsets != nil && !f.offsets.isLocal() {
		return nil
	}
	from, to, err := f.rowsOf(ctx, a, b)
	if err != nil {
		return err
	}
	return f.rows.prefetch(from, to)
}

// warm brings records [a, b), which exist, and their offsets into memory or into the files.
func (f *field) warm(ctx context.Context, a, b int) error {
	if f.offsets != nil && !f.offsets.isLocal() {
		need := f.offsetRanges(nil, a, b)
		_, held, err := f.offsets.fetch(ctx, func() (request, error) { return request{need: need}, nil })
		if err != nil {
			return err
		}
		defer held.Release()
	}
	from, to, err := f.rowsOf(ctx, a, b)
	if err != nil {
		return err
	}
	return f.rows.warm(ctx, from, to)
}

// slice returns records [a, b) of a ragged field. The records must exist.
func (f *field) slice(a, b int, offsets []int64) (tensor.View, error) {
	row, err := f.place(context.Background(), a, b, offsets)
	if err != nil {
		return tensor.View{}, err
	}
	return f.rows.slice(row, row+int(offsets[b-a]))
}

// lengths fills offsets with where each record would start if the records' rows were concatenated.
func (f *field) lengths(ctx context.Context, records []int, offsets []int64, s *offsetScratch) error {
	if err := f.find(ctx, records, s); err != nil {
		return err
	}
	offsets[0] = 0
	for k, r := range s.runs {
		offsets[k+1] = offsets[k] + int64(r.n)
	}
	return nil
}

// gather copies records of a ragged field to the start of dst, and returns dst, cut or grown to
// their length.
func (f *field) gather(ctx context.Context, records []int, offsets []int64, dst []byte) ([]byte, error) {
	s := f.borrow()
	defer f.giveBack(s)
	if err := f.lengths(ctx, records, offsets, s); err != nil {
		return dst, err
	}
	dst = resize(dst, int(offsets[len(records)])*f.rows.column.size)
	return dst, f.rows.copy(ctx, s.runs, dst)
}

// ranges returns the byte ranges of records, and an error for records that do not exist.
func (f *field) ranges(ctx context.Context, records []int) (list []Range, err error) {
	if f.offsets != nil {
		s := f.borrow()
		defer f.giveBack(s)
		if err := f.find(ctx, records, s); err != nil {
			return nil, err
		}
		return f.rows.rangesOfRuns(s.runs), nil
	}
	for _, i := range records {
		if err := f.checkPlace(i); err != nil {
			return nil, err
		}
	}
	return f.rows.rangesOfRows(nil, records), nil
}

// readers returns the readers of the field's columns.
func (f *field) readers() []*reader {
	if f.offsets == nil {
		return []*reader{f.rows}
	}
	return []*reader{f.rows, f.offsets}
}

// intact returns an error if a file has become too short for the field's records.
func (f *field) intact() error {
	for _, r := range f.readers() {
		if r.mapped == nil {
			continue
		}
		if err := r.mapped.memory.intact(); err != nil {
			return err
		}
	}
	return nil
}
