package chunk

import (
	"cmp"
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// call is one Records or Gather: jobs, each of which is a chunk and what is wanted of it.
type call struct {
	r   *Reader
	ctx context.Context
	dst []byte

	wants []want // scratch of addAll
	slots []slot // by row
	rows  []int  // rows[i] is the first slot of group i; one more at the end
	jobs  int64  // groups x columns
	extra int64  // jobs after those, of rows from after on, which only helpers do
	after int64

	next    atomic.Int64 // job that nobody has begun
	helpers sync.WaitGroup

	mu     sync.Mutex
	err    error
	at     int64 // job that err is of
	caught any   // panic of a helper
}

// want is one record that Gather was asked for.
type want struct{ record, to int }

// slot is n records of a row, from record first of it, which go to dst side by side.
type slot struct {
	row      int64
	first, n int64
	to       int64 // place in dst, in records
}

func (c *call) begin(ctx context.Context, dst []byte) {
	c.ctx, c.dst = ctx, dst
	c.slots, c.rows = c.slots[:0], c.rows[:0]
	c.next.Store(1) // the caller begins with 0
	c.jobs, c.extra = 0, 0
	c.err, c.caught = nil, nil
}

// addRun asks for records [a, b).
func (c *call) addRun(a, b int64) { c.addRunTo(a, b, 0) }

// addRunTo asks for records [a, b), to be put in dst from a place on, which is counted in records.
func (c *call) addRunTo(a, b, to int64) {
	deep := c.r.grid.deep
	for at := a; at < b; {
		first := at % deep
		n := min(deep-first, b-at)
		c.add(slot{at / deep, first, n, to + at - a})
		at += n
	}
}

// addAll asks for records in any order.
func (c *call) addAll(indices []int) {
	c.wants = c.wants[:0]
	for i, x := range indices {
		c.wants = append(c.wants, want{x, i})
	}
	if !slices.IsSortedFunc(c.wants, byRecord) {
		slices.SortFunc(c.wants, byRecord)
	}
	deep := c.r.grid.deep
	for _, w := range c.wants {
		row, first := int64(w.record)/deep, int64(w.record)%deep
		if n := len(c.slots); n > 0 {
			s := &c.slots[n-1]
			if s.row == row && s.first+s.n == first && s.to+s.n == int64(w.to) {
				s.n++
				continue
			}
		}
		c.add(slot{row, first, 1, int64(w.to)})
	}
}

func byRecord(a, b want) int { return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.to, b.to)) }

func (c *call) add(s slot) {
	if n := len(c.slots); n == 0 || c.slots[n-1].row != s.row {
		c.rows = append(c.rows, n)
	}
	c.slots = append(c.slots, s)
}

// aloneBytes is how much work is done sooner than a helper could be woken.
const aloneBytes = 32 << 10

// run does all jobs and returns the error of the first that has one.
func (c *call) run() error {
	if len(c.dst) == 0 {
		return c.ctx.Err()
	}
	c.jobs = int64(len(c.rows)) * c.r.grid.columns
	c.rows = append(c.rows, len(c.slots))
	alone := c.r.pool.enter()
	defer c.r.pool.leave()
	c.r.foresee(c, alone)
	if n := c.jobs + c.extra; n > 1 && n*int64(c.r.grid.size) > aloneBytes {
		c.r.pool.invite(c, n-1)
	}
	c.work(0, c.jobs)
	c.next.Store(c.jobs + c.extra) // who has not begun to read ahead by now, need not
	c.helpers.Wait()
	if c.caught != nil {
		panic(c.caught)
	}
	return c.err
}

// help does what the caller has not begun, and then reads ahead.
func (c *call) help() { c.work(-1, c.jobs+c.extra) }

// work does jobs below end until there are no more, the given one first unless that is negative.
func (c *call) work(job, end int64) {
	w := <-c.r.pool.workers
	defer func(before bool) {
		debug.SetPanicOnFault(before)
		c.r.pool.workers <- w
		if p := recover(); p != nil {
			c.lost(job, p)
		}
	}(debug.SetPanicOnFault(true))
	if job < 0 {
		job = c.next.Add(1) - 1
	}
	for ; job < end; job = c.next.Add(1) - 1 {
		err := c.ctx.Err()
		switch {
		case err == nil && job < c.jobs:
			err = c.do(w, job)
		case err == nil:
			c.r.readAhead(w, c.after+job-c.jobs)
		}
		if err != nil {
			c.stop(job, err)
			return
		}
	}
}

// stop ends the call. Jobs are begun in order, so the error of the first that fails is the
// same in every run. Readahead reports none: the read itself finds it again.
func (c *call) stop(job int64, err error) {
	c.next.Store(c.jobs + c.extra)
	if job >= c.jobs {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || job < c.at {
		c.err, c.at = err, job
	}
}

// lost makes an error of a fault in the mapping, and keeps any other panic for the caller.
func (c *call) lost(job int64, p any) {
	fault, ok := p.(interface{ Addr() uintptr })
	mapped := c.r.src.mapped
	if ok && len(mapped) > 0 && fault.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(mapped))) < uintptr(len(mapped)) {
		if job >= c.jobs {
			return
		}
		s, _ := c.r.find(c.place(job))
		c.stop(job, c.r.failed(s, cut(s.offset, s.size)))
		return
	}
	c.stop(min(job, c.jobs-1), meta.ErrCorrupt)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caught = p
}

// place returns the chunk of a job.
func (c *call) place(job int64) int64 {
	n := c.r.grid.columns
	return c.slots[c.rows[job/n]].row*n + job%n
}
