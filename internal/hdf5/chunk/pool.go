package chunk

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/codec/stream"
)

// Backend names what inflates: "Go" or "libdeflate".
const Backend = stream.Backend

// aloneBytes is how much work is done sooner than a helper could be woken.
const aloneBytes = 32 << 10

// Pool is the workers that inflate chunks, for any number of Readers. Its methods may be
// called from any goroutine.
type Pool struct {
	calls   chan invitation // has no room: only a helper that waits takes one
	workers chan *worker    // those that nobody uses
	start   sync.Once
	closed  chan struct{}
	end     sync.Once
	callers atomic.Int32
}

// helped is work that a helper can do a part of.
type helped interface{ help() }

// invitation asks for help until done.
type invitation struct {
	to   helped
	done *sync.WaitGroup
}

// worker is the memory of one goroutine that undoes filters: stored bytes, and what is
// between two filters.
type worker struct {
	inflater stream.Inflater
	raw      []byte
	spare    [2][]byte
	piece    piece
}

// NewPool returns a pool of that many workers; 0 means as many as GOMAXPROCS. One of them is
// the goroutine that calls Records or Gather; however many call, no more than workers
// inflate at a time. A worker holds up to three chunks of memory: the stored bytes (none
// where the file is mapped) and, where chunks went through several filters, what is between.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{calls: make(chan invitation), workers: make(chan *worker, workers), closed: make(chan struct{})}
	for range workers {
		p.workers <- new(worker)
	}
	return p
}

// Workers returns how many goroutines inflate at most.
func (p *Pool) Workers() int { return cap(p.workers) }

// Close ends the helping goroutines. Readers must not be in use then; afterwards the calling
// goroutine does all the work.
func (p *Pool) Close() { p.end.Do(func() { close(p.closed) }) }

// enter counts a call, until leave, and reports whether it is the only one.
func (p *Pool) enter() (alone bool) { return p.callers.Add(1) == 1 }

func (p *Pool) leave() { p.callers.Add(-1) }

// invite asks up to n helpers that have nothing else to do. helpers counts those that came.
func (p *Pool) invite(to helped, helpers *sync.WaitGroup, n int64) {
	p.start.Do(func() {
		for range cap(p.workers) - 1 {
			go p.help()
		}
	})
	for n = min(n, int64(cap(p.workers)-1)); n > 0; n-- {
		helpers.Add(1)
		select {
		case p.calls <- invitation{to, helpers}:
		default:
			helpers.Done()
			return
		}
	}
}

// help is a worker of the pool. It joins the calls that ask for help, whatever their dataset, until the pool is closed.
// The caller always works itself, so a busy pool makes a call slower and never stops it.
func (p *Pool) help() {
	for {
		select {
		case c := <-p.calls:
			c.to.help()
			c.done.Done()
		case <-p.closed:
			return
		}
	}
}
