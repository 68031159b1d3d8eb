package mmapds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
)

// packed is a column of an HDF5 file or of Zarr that is not stored as it is.
type packed struct {
	field, path string
	how, why    string // it is read, for people
	file        []byte // all of it, mapped; nil for Zarr
	warm        pageSet
	r           *chunk.Reader
	fetched     *chunk.Reader // reads through a pager, if there is one, and only on request
	meta        *layout.Column
	mu          sync.Mutex
	idle        []*scratch
}

// scratch is memory of one call.
type scratch struct {
	rows []int
	runs []chunk.Run
}

// openPacked reads the table of chunks of a column.
func (d mapper) openPacked(c *column, column *layout.Column) error {
	if d.pool == nil {
		d.pool = chunk.NewPool(0)
	}
	if how := layout.Of(d.files).Storage(column); how != "" {
		return d.openZarr(c, column, how)
	}
	m, err := d.mapShared(d.files.Path)
	if err != nil {
		return err
	}
	*c = newColumn(column)
	p := &packed{field: d.specs[column.Field].Name, path: d.files.Path, file: m.Bytes(), warm: newPageSet(len(m.Bytes())), meta: column}
	c.packed = p
	f, err := os.Open(p.path) // for the index of the chunks
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := layout.Of(d.files).Object(column, f)
	if err != nil {
		return err
	}
	p.how, p.why = reads(data)
	p.r, err = layout.Of(d.files).OpenColumn(column, f, p.file, chunk.Options{Pool: d.pool, Warm: p.populate})
	if err == nil && d.pager != nil {
		p.fetched, err = layout.Of(d.files).OpenColumn(column, pagedFile{d.pager, p.path}, nil, chunk.Options{Pool: d.pool, Exact: true})
	}
	return err
}

// openZarr opens a column of Zarr, whose chunks are in files of their own.
func (d mapper) openZarr(c *column, column *layout.Column, how string) (err error) {
	*c = newColumn(column)
	how = strings.Replace(how, ", zstd", ", zstd by "+stream.ZstdBackend, 1)
	c.packed = &packed{field: d.specs[column.Field].Name, path: d.files.Path, how: "decoded", why: how, meta: column}
	c.packed.r, err = layout.Of(d.files).OpenColumn(column, nil, nil, chunk.Options{Pool: d.pool})
	c.packed.fetched = c.packed.r // its files are whole, whatever a pager fetches
	return err
}

// reads says how data that is not viewed in place is read, and why.
func reads(data *meta.Dataset) (how, why string) {
	how, why = "copied", fmt.Sprintf("it starts at byte %d, which is no multiple of its element size", data.Layout.Offset)
	if err := data.Mappable(); err != nil {
		why = err.Error()
	}
	if len(data.Filters) > 0 {
		how = "inflated"
	}
	for _, f := range data.Filters {
		switch f.ID {
		case meta.FilterDeflate:
			why += ", gzip by " + chunk.Backend
		case meta.FilterZstd:
			why += ", zstd by " + stream.ZstdBackend
		}
	}
	return how, why
}

// next returns the number that row a has in the file, and how many of rows [a, b) follow it
// there without a gap.
func (p *packed) next(a, b int) (row int64, n int) {
	e, _ := p.meta.Extent(int64(a))
	return e.Row + int64(a) - e.First, min(b-a, int(e.First+e.Count)-a)
}

// borrow returns scratch that nobody uses.
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

func (p *packed) giveBack(s *scratch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// populate brings bytes of the file in, once.
func (p *packed) populate(offset, size int64) error {
	from, to := int(offset), int(offset+size)
	if size == 0 || p.warm.has(from, to) {
		return nil
	}
	if err := mmap.Populate(p.file[from:to]); err != nil && !errors.Is(err, mmap.ErrUnsupported) {
		return fmt.Errorf("was it truncated? %w: %w", err, meta.ErrCorrupt)
	}
	p.warm.add(from, to)
	return nil
}

// prefetch starts to read what rows [a, b) are made from.
func (p *packed) prefetch(a, b int) {
	for a < b {
		row, n := p.next(a, b)
		p.r.Stored(row, row+int64(n), func(offset, size int64) {
			if p.has(offset, size) && !p.warm.has(int(offset), int(offset+size)) {
				mmap.WillNeed(p.file[offset : offset+size])
			}
		})
		a += n
	}
}

// ask starts to read what rows are made from, which exist.
func (p *packed) ask(indices []int) {
	for k := 0; k < len(indices); {
		first, n := indices[k], 1
		for k+n < len(indices) && indices[k+n] == first+n {
			n++
		}
		p.prefetch(first, first+n)
		k += n
	}
}

// has reports whether bytes are in the mapping; size 0 has nothing to read.
func (p *packed) has(offset, size int64) bool {
	return size > 0 && layout.Inside(offset, size, int64(len(p.file))) == nil
}

// warmRows waits for what rows [a, b) are made from.
func (p *packed) warmRows(a, b int) (err error) {
	for a < b {
		row, n := p.next(a, b)
		p.r.Stored(row, row+int64(n), func(offset, size int64) {
			if err == nil && p.has(offset, size) {
				err = p.populate(offset, size)
			}
		})
		a += n
	}
	return p.wrap(err)
}

// run makes rows [a, b), which exist.
func (p *packed) run(dst []byte, a, b int) error {
	size := p.r.RecordBytes()
	for a < b {
		row, n := p.next(a, b)
		if err := p.r.Records(context.Background(), dst[:n*size], row, row+int64(n)); err != nil {
			return p.wrap(err)
		}
		dst, a = dst[n*size:], a+n
	}
	return nil
}

// gather makes rows in any order.
func (p *packed) gather(ctx context.Context, indices []int, dst []byte) error {
	s := p.borrow()
	defer p.giveBack(s)
	for _, i := range indices {
		if err := checkRange(p.field, i, i+1, int(p.meta.Rows)); err != nil {
			return err
		}
		row, _ := p.next(i, i+1)
		s.rows = append(s.rows, int(row))
	}
	p.ask(indices)
	return p.wrap(p.r.Gather(ctx, dst, s.rows))
}

// gatherRuns makes runs of rows, which exist: the k-th is those from rows[k] on that fill dst
// from row offsets[k] to offsets[k+1].
func (p *packed) gatherRuns(ctx context.Context, rows []int, offsets []int64, dst []byte) error {
	s := p.borrow()
	defer p.giveBack(s)
	for k, a := range rows {
		to := offsets[k]
		for b := a + int(offsets[k+1]-to); a < b; {
			row, n := p.next(a, b)
			s.runs = append(s.runs, chunk.Run{First: row, N: int64(n), To: to})
			a, to = a+n, to+int64(n)
		}
	}
	return p.wrap(p.r.Runs(ctx, dst, s.runs))
}

// offset returns where the chunk of a row is in the file.
func (p *packed) offset(row int) (at int64) {
	r, _ := p.next(row, row+1)
	return p.r.Offset(r)
}

// wrap names field and file.
func (p *packed) wrap(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("mmapds: field %q: %s: %w", p.field, p.path, layout.Mark(err))
}
