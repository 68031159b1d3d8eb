package chunk

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// call is one call of Records, Gather or Runs, and does the jobs of its request together with helpers of the pool.
type call struct {
	request request
	jobs    int64
	extra   int64 // jobs of reading ahead, for rows from after on, which only helpers do
	after   int64

	next    atomic.Int64 // the next job that no goroutine has begun
	helpers sync.WaitGroup

	mu     sync.Mutex
	err    error
	at     int64 // the job that failed with err
	caught any   // panic of a helper
}

func (c *call) begin(ctx context.Context, dst []byte) {
	c.request.begin(ctx, dst)
	c.next.Store(1) // the caller begins with 0
	c.jobs, c.extra = 0, 0
	c.err, c.caught = nil, nil
}

// run does all jobs and returns the error of the first job that failed.
func (c *call) run(ahead *readahead) error {
	data := c.request.data
	if len(c.request.dst) == 0 {
		return c.request.ctx.Err()
	}
	c.jobs = c.request.end()
	alone := data.pool.enter()
	defer data.pool.leave()
	c.after, c.extra = ahead.foresee(&c.request, c.jobs, alone)
	if n := c.jobs + c.extra; n > 1 && n*int64(data.grid.size) > aloneBytes {
		data.pool.invite(c, &c.helpers, n-1)
	}
	c.work(0, c.jobs)
	c.next.Store(c.jobs + c.extra) // helpers that have not begun to read ahead stop here
	c.helpers.Wait()
	if c.caught != nil {
		panic(c.caught)
	}
	return c.err
}

// help does jobs that the caller has not begun, and then reads ahead.
func (c *call) help() { c.work(-1, c.jobs+c.extra) }

// work does jobs below end until there are no more, beginning with the given one unless that is negative.
func (c *call) work(job, end int64) {
	pool := c.request.data.pool
	w := <-pool.workers
	defer func(before bool) {
		debug.SetPanicOnFault(before)
		pool.workers <- w
		if p := recover(); p != nil {
			c.lost(job, p)
		}
	}(debug.SetPanicOnFault(true))
	if job < 0 {
		job = c.next.Add(1) - 1
	}
	for ; job < end; job = c.next.Add(1) - 1 {
		err := c.request.ctx.Err()
		switch {
		case err == nil && job < c.jobs:
			err = c.request.do(w, job)
		case err == nil:
			c.request.data.prefetch(w, c.after+job-c.jobs)
		}
		if err != nil {
			c.stop(job, err)
			return
		}
	}
}

// stop ends the call with an error. Jobs are begun in order, so the error of the first job that fails is the same in
// every run. Reading ahead reports no errors: the read itself meets them again.
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

// lost handles a panic. A fault in the mapping, because the file was truncated after it was mapped, becomes an error.
// Any other panic is passed on to the caller's goroutine.
func (c *call) lost(job int64, p any) {
	fault, ok := p.(interface{ Addr() uintptr })
	data := c.request.data
	mapped := data.src.mapped
	if ok && len(mapped) > 0 && fault.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(mapped))) < uintptr(len(mapped)) {
		if job >= c.jobs {
			return
		}
		s, _ := data.find(c.request.place(job))
		c.stop(job, data.failed(s, cut(s.offset, s.size)))
		return
	}
	c.stop(min(job, c.jobs-1), meta.ErrCorrupt)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caught = p
}
