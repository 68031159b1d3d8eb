package mmapds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/tensor"
)

// Slice returns records [a, b) of a field as one array of shape (b-a, record shape...). It
// touches no memory, unless WithVerify asks for it. Where Contiguous says no, the records
// are copied, or inflated, into new memory. The view is valid until Close: see Lifetimes above.
func (d *Dataset) Slice(field string, a, b int) (tensor.View, error) {
	c, err := d.column(field)
	if err != nil {
		return tensor.View{}, err
	}
	if err := c.check(a, b); err != nil {
		return tensor.View{}, err
	}
	return d.run(c, a, b)
}

// run returns rows of a column that exist.
func (d *fetcher) run(c *column, a, b int) (tensor.View, error) {
	if !d.fetches() {
		if v, err := d.runLocal(c, a, b); !d.distrusts(err) {
			return v, err
		}
	}
	return d.fetchRun(context.Background(), c, a, b)
}

// runLocal is run for rows that are in the files.
func (d *arrays) runLocal(c *column, a, b int) (tensor.View, error) {
	if a == b {
		return tensor.Of(c.spec, 0, nil), nil
	}
	if c.packed != nil {
		dst := make([]byte, (b-a)*c.size)
		err := c.packed.run(dst, a, b)
		if err == nil {
			err = d.checkPacked(c, a, b, dst)
		}
		return tensor.Of(c.spec, b-a, dst), err
	}
	s, at := c.find(a)
	if end := at + (b-a)*c.size; end <= len(s.data) {
		if c.sums != nil {
			if err := d.checkView(c, s, a, b); err != nil {
				return tensor.View{}, err
			}
		}
		return tensor.Of(c.spec, b-a, s.data[at:end:end]), nil
	}
	dst := make([]byte, (b-a)*c.size)
	if err := d.copyRun(c, a, b, dst); err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(c.spec, b-a, dst), nil
}

// Contiguous reports whether Slice(field, a, b) is a view of mapped memory. On Linux it is in
// datasets of this module, but for runs that cross from one split, or from what was there
// before an append, to the next; elsewhere, runs that cross shards are not. Where a Pager takes bytes
// out of the files again, none is.
func (d *Dataset) Contiguous(field string, a, b int) bool {
	f, err := d.field(field)
	if err != nil || checkRange(field, a, b, d.Len()) != nil || d.pager != nil && !d.pager.Stays() {
		return false
	}
	if a == b || f.offsets == nil {
		return f.rows.contiguous(a, b)
	}
	from, _, err := d.record(f, a)
	if err != nil {
		return false
	}
	to, n, err := d.record(f, b-1)
	return err == nil && f.rows.contiguous(from, to+n)
}

// contiguous reports whether rows [a, b), which exist, are one piece of mapped memory.
func (c *column) contiguous(a, b int) bool {
	if a == b || c.packed != nil {
		return a == b
	}
	s, at := c.find(a)
	return at+(b-a)*c.size <= len(s.data)
}

// Prefetch starts to read records [a, b) of a field from disk, and does not wait. Of a ragged
// field it waits for the offsets.
func (d *Dataset) Prefetch(field string, a, b int) error {
	if d.fetches() {
		f, err := d.field(field)
		if err == nil && f.offsets == nil && checkRange(field, a, b, d.Len()) == nil {
			d.pager.Prefetch(f.rows.ranges(nil, a, b))
		}
		return err
	}
	c, a, b, err := d.rowsOf(field, a, b)
	if err != nil {
		return err
	}
	return c.prefetch(a, b)
}

func (c *column) prefetch(a, b int) error {
	if c.packed != nil {
		c.packed.prefetch(a, b)
		return nil
	}
	return c.span(a, b, func(s *segment, from, to int) error {
		if !s.warm.has(from, to) && !c.adopts(s, from, to) {
			willNeed(s.data[from:to])
		}
		return nil
	})
}

// Warm reads records [a, b) of a field from disk, where they are not in memory yet, and
// waits for it in a system call, so that touching them afterwards does not stop a
// processor of the scheduler.
func (d *Dataset) Warm(field string, a, b int) error {
	f, err := d.field(field)
	if err == nil {
		err = checkRange(field, a, b, d.Len())
	}
	switch {
	case err != nil:
		return err
	case d.fetches():
		return d.fetchWarm(context.Background(), f, a, b)
	}
	return d.warmRecords(f, a, b)
}

// warmRecords is Warm for records that are in the files.
func (d *arrays) warmRecords(f *field, a, b int) error {
	a, b, err := d.rowsIn(f, a, b)
	if err != nil {
		return err
	}
	if err := f.rows.prefetch(a, b); err != nil {
		return err
	}
	return d.warmRows(f.rows, a, b)
}

func (d *arrays) warmRows(c *column, a, b int) error {
	if c.packed != nil {
		return c.packed.warmRows(a, b)
	}
	c.look()
	for ; a < b; a = min(b, a+c.perStep()) {
		s, at := c.find(a)
		to := min(at+c.perStep()*c.size, len(s.data), at+(b-a)*c.size)
		if err := d.ready(c, s, at, to); err != nil {
			return err
		}
	}
	return nil
}

// Gather copies record indices[i] to dst[i*size:], with size the field's RecordBytes; dst is
// exactly as long as that needs. Indices may come in any order and repeat. It starts all
// reads before it waits for the first, and allocates nothing for records that are in memory.
// How it comes to others is for WithRead to say.
func (d *Dataset) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	c, err := d.column(field)
	if err != nil {
		return err
	}
	if len(dst) != len(indices)*c.size {
		panic("mmapds: Gather: dst has not the length of the records asked for")
	}
	if d.fetches() {
		return d.fetchGather(ctx, c, indices, dst)
	}
	if err := d.gatherLocal(ctx, c, indices, dst); !d.distrusts(err) {
		return err
	}
	return d.fetchGather(ctx, c, indices, dst)
}

// gatherLocal is Gather for records that are in the files.
func (d *arrays) gatherLocal(ctx context.Context, c *column, indices []int, dst []byte) error {
	if c.packed != nil {
		if err := c.packed.gather(ctx, indices, dst); err != nil {
			return err
		}
		return d.checkGathered(c, indices, dst)
	}
	c.prefetchFirst(indices)
	if len(dst) >= lookBytes || rand.Uint32()%lookRarely == 0 {
		c.look()
	}
	hot, cold, err := c.ask(indices)
	switch {
	case err != nil:
		return err
	case cold >= 0:
		return d.gatherCold(ctx, c, indices, cold, dst)
	}
	return d.gatherMapped(ctx, c, indices, dst, hot)
}

// ask starts to read the rows whose pages were not brought in before. hot says that there are
// none, so that nothing is to be done before the copy. cold is the first place in indices of
// a row that is better read by a pread, or -1.
func (c *column) ask(indices []int) (hot bool, cold int, err error) {
	n := uint(c.len())
	hot = !c.reading.always()
	full := hot && c.sums == nil && c.full()
	var w wants
	defer w.send()
	for k, i := range indices {
		if uint(i) >= n {
			return false, -1, c.check(i, i+1)
		}
		if full {
			continue
		}
		s, at := c.find(i)
		if !c.reading.always() && s.warm.has(at, at+c.size) {
			hot = hot && c.settled(i)
			continue
		}
		cold, there := c.cold(s, at)
		if cold {
			return false, k, nil
		}
		hot = !there && c.want(&w, s, at, at+c.size) && hot && c.settled(i)
	}
	return hot, -1, nil
}

// gatherCold is Gather where record indices[first] is not in memory: it reads those that are
// not, and copies the others.
func (d *arrays) gatherCold(ctx context.Context, c *column, indices []int, first int, dst []byte) error {
	var cold []int
	for k, i := range indices {
		if err := c.check(i, i+1); err != nil {
			return err
		}
		s, at := c.find(i)
		if is, _ := c.cold(s, at); is || k == first {
			cold = append(cold, k)
		}
	}
	if err := d.preads(ctx, c, indices, cold, dst); err != nil {
		return err
	}
	for from := 0; from < len(indices); {
		to := len(indices)
		if len(cold) > 0 {
			to, cold = cold[0], cold[1:]
		}
		if err := d.gatherMapped(ctx, c, indices[from:to], dst[from*c.size:to*c.size], false); err != nil {
			return err
		}
		from = to + 1
	}
	return nil
}

// gatherMapped copies records from the mapping; hot says that nothing is to be done before.
func (d *arrays) gatherMapped(ctx context.Context, c *column, indices []int, dst []byte, hot bool) error {
	if len(indices) > 0 && !c.counts.mapped.Load() {
		c.counts.mapped.Store(true)
	}
	for len(indices) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(indices), c.perStep())
		if err := d.gather(c, indices[:n], dst, hot); err != nil {
			return err
		}
		indices, dst = indices[n:], dst[n*c.size:]
	}
	return nil
}

// perStep returns how many rows are handled between two looks at a context.
func (c *column) perStep() int { return max(1, (4<<20)/c.size) }

// gather copies rows; hot says that nothing is to be done before.
func (d *arrays) gather(c *column, indices []int, dst []byte, hot bool) (err error) {
	defer d.catch(&err, debug.SetPanicOnFault(true))
	if hot {
		c.copyRows(indices, dst)
		return nil
	}
	for k, i := range indices {
		s, at := c.find(i)
		if err := d.ready(c, s, at, at+c.size); err != nil {
			return err
		}
		kernel.Copy(dst[k*c.size:(k+1)*c.size], s.data[at:at+c.size])
	}
	return nil
}

// copyRows copies rows that are in memory, the first of which are on their way to the cache. Copying
// while the next ones are under way hides most of the wait for them.
func (c *column) copyRows(indices []int, dst []byte) {
	size, distance, part := c.size, c.prefetchDistance(), c.prefix()
	for k, i := range indices {
		if k+distance < len(indices) {
			c.load(indices[k+distance], part)
		}
		kernel.Copy(dst[k*size:(k+1)*size], c.row(i))
	}
}

func (d *arrays) copyRun(c *column, a, b int, dst []byte) (err error) {
	defer d.catch(&err, debug.SetPanicOnFault(true))
	return c.span(a, b, func(s *segment, from, to int) error {
		if err := d.ready(c, s, from, to); err != nil {
			return err
		}
		dst = dst[copy(dst, s.data[from:to]):]
		return nil
	})
}

// warm brings bytes [from, to) of a segment in, once.
func (d *arrays) warm(c *column, s *segment, from, to int) error {
	if s.warm.has(from, to) {
		return nil
	}
	switch err := populate(s.data[from:to]); {
	case err == nil, errors.Is(err, mmap.ErrUnsupported):
		s.warm.add(from, to)
		return nil
	default:
		return d.lost(c, s.first+from/c.size, err)
	}
}

// lost describes memory of a row that the system could not give.
func (d *arrays) lost(c *column, row int, cause error) error {
	path, shard, at := c.where(row)
	return &ReadError{Field: d.specs[c.meta.Field].Name, Shard: shard, Path: path, Offset: at, Err: cause, record: d.recordOf(c, row)}
}

// ReadError says that mapped memory of a record is gone: the file was truncated, or its
// disk failed.
type ReadError struct {
	Field  string
	Shard  int    // number of the extent; 0 in an HDF5 file
	Path   string // of the file
	Offset int64  // of the first byte of the row that could not be read
	Err    error
	record int
}

// Record returns the number of the record.
func (e *ReadError) Record() int { return e.record }

// Error names record, field and place.
func (e *ReadError) Error() string {
	return fmt.Sprintf("mmapds: record %d: field %q: shard %d: %s: byte %#x cannot be read any more; was it truncated? %v", e.record, e.Field, e.Shard, e.Path, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
