package mmapds

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
)

// packed answers for rows of an HDF5 file or of Zarr that must be decoded. mu guards idle only; the
// chunk reader has its own cache and locks.
type packed struct {
	c      *column
	path   string
	file   []byte  // the whole file, mapped; nil for Zarr, and for chunks that a pager fetches
	warmed pageSet // pages of file that populate has brought in
	r      *chunk.Reader
	mu     sync.Mutex
	idle   []*scratch
}

// scratch is memory that one call borrows and returns.
type scratch struct {
	rows []int // numbers of rows in the file
	runs []chunk.Run
}

// newPacked returns a packed without its chunk reader r, which the caller opens.
func newPacked(c *column, path string, file []byte) *packed {
	return &packed{c: c, path: path, file: file, warmed: newPageSet(len(file))}
}

// next returns the number that row a has in the file, and how many of rows [a, b) follow it there
// without a gap.
func (p *packed) next(a, b int) (row int64, n int) {
	e, _ := p.c.meta.Extent(int64(a))
	return e.Row + int64(a) - e.First, min(b-a, int(e.First+e.Count)-a)
}

// stored calls f with each place and size of the stored bytes that rows [a, b) are decoded from.
func (p *packed) stored(a, b int, f func(offset, size int64)) {
	for a < b {
		row, n := p.next(a, b)
		p.r.Stored(row, row+int64(n), f)
		a += n
	}
}

// offset returns where the file has the chunk of a row.
func (p *packed) offset(_ *layout.Extent, row int) int64 {
	r, _ := p.next(row, row+1)
	return p.r.Offset(r)
}

// borrow returns scratch memory that no other call uses.
func (p *packed) borrow() *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return new(scratch)
	}
	s := p.idle[n-1]
	p.idle = p.idle[:n-1]
	s.rows, s.runs = s.rows[:0], s.runs[:0]
	return s
}

// giveBack keeps the memory that borrow returned for later calls.
func (p *packed) giveBack(s *scratch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// populate reads bytes of the mapped file into memory, once, in a system call instead of page
// faults of the decoder.
func (p *packed) populate(offset, size int64) error {
	from, to := int(offset), int(offset+size)
	if size == 0 || p.warmed.has(from, to) {
		return nil
	}
	if err := mmap.Populate(p.file[from:to]); err != nil && !errors.Is(err, mmap.ErrUnsupported) {
		return fmt.Errorf("was it truncated? %w: %w", err, meta.ErrCorrupt)
	}
	p.warmed.add(from, to)
	return nil
}

// has reports whether stored bytes lie within the mapping. A chunk of size 0 has nothing to read.
func (p *packed) has(offset, size int64) bool {
	return size > 0 && layout.Inside(offset, size, int64(len(p.file))) == nil
}

// prefetch starts to read the stored bytes of rows [a, b). It decodes nothing. Chunks that are
// files of their own, or that a pager fetches, are not read ahead here.
func (p *packed) prefetch(a, b int) error {
	if p.file == nil {
		return nil
	}
	p.stored(a, b, func(offset, size int64) {
		if p.has(offset, size) && !p.warmed.has(int(offset), int(offset+size)) {
			mmap.WillNeed(p.file[offset : offset+size])
		}
	})
	return nil
}

// ask starts to read the stored bytes of rows, which exist.
func (p *packed) ask(rows []int) {
	for k := 0; k < len(rows); {
		first, n := rows[k], 1
		for k+n < len(rows) && rows[k+n] == first+n {
			n++
		}
		_ = p.prefetch(first, first+n)
		k += n
	}
}

// warm reads the stored bytes of rows [a, b) into memory. It decodes nothing.
func (p *packed) warm(a, b int) (err error) {
	p.stored(a, b, func(offset, size int64) {
		if err == nil && p.has(offset, size) {
			err = p.populate(offset, size)
		}
	})
	return p.wrap(err)
}

// slice decodes rows [a, b) to new memory.
func (p *packed) slice(a, b int) ([]byte, error) {
	if a == b {
		return nil, nil
	}
	return p.read(a, b, nil)
}

// read decodes rows [a, b) to buf, or to new memory if buf is too small.
func (p *packed) read(a, b int, buf []byte) ([]byte, error) {
	size := p.c.size
	buf = resize(buf, (b-a)*size)
	for dst := buf; a < b; {
		row, n := p.next(a, b)
		if err := p.r.Records(context.Background(), dst[:n*size], row, row+int64(n)); err != nil {
			return buf, p.wrap(err)
		}
		dst, a = dst[n*size:], a+n
	}
	return buf, nil
}

// gather decodes each chunk once for all of its rows.
func (p *packed) gather(ctx context.Context, rows []int, dst []byte, arrived arrival) error {
	s := p.borrow()
	defer p.giveBack(s)
	for _, i := range rows {
		if err := p.c.check(i, i+1); err != nil {
			return err
		}
		row, _ := p.next(i, i+1)
		s.rows = append(s.rows, int(row))
	}
	p.ask(rows)
	if err := p.r.Gather(ctx, dst, s.rows); err != nil || arrived == nil {
		return p.wrap(err)
	}
	for k, i := range rows {
		if err := arrived(i, dst[k*p.c.size:(k+1)*p.c.size]); err != nil {
			return err
		}
	}
	return nil
}

// copy decodes each chunk once for all runs in it.
func (p *packed) copy(ctx context.Context, runs []rowSpan, dst []byte, arrived arrival) error {
	s := p.borrow()
	defer p.giveBack(s)
	to := int64(0)
	for _, r := range runs {
		for a, b := r.row, r.row+r.n; a < b; {
			row, n := p.next(a, b)
			s.add(chunk.Run{First: row, N: int64(n), To: to})
			a, to = a+n, to+int64(n)
		}
	}
	if err := p.r.Runs(ctx, dst, s.runs); err != nil {
		return p.wrap(err)
	}
	return arrive(arrived, p.c.size, runs, dst)
}

// add appends a run, or extends the last run if the new run continues it in both the file and the
// result.
func (s *scratch) add(r chunk.Run) {
	if n := len(s.runs); n > 0 && s.runs[n-1].First+s.runs[n-1].N == r.First && s.runs[n-1].To+s.runs[n-1].N == r.To {
		s.runs[n-1].N += r.N
		return
	}
	s.runs = append(s.runs, r)
}

// wrap adds field and file to an error. The end of a context stays as it is, since the caller
// compares it.
func (p *packed) wrap(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("mmapds: field %q: %s: %w", p.c.field, p.path, err)
}
