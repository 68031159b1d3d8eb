package chunk

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/codec/stream"
)

// Backend names the inflater: "Go" or "libdeflate".
const Backend = stream.Backend

// aloneBytes is the amount of work that one goroutine finishes before it could wake a helper.
const aloneBytes = 32 << 10

// Pool is the workers that decompress chunks, for any number of Readers. Its methods may be called from any goroutine.
type Pool struct {
	calls   chan invitation // unbuffered: only an idle helper takes an invitation
	workers chan *worker    // workers that no goroutine uses
	start   sync.Once
	closed  chan struct{}
	end     sync.Once
	callers atomic.Int32
}

// helped is work of which a helper can do a part.
type helped interface{ help() }

// invitation asks a helper to help, and to call done afterwards.
type invitation struct {
	to   helped
	done *sync.WaitGroup
}

// worker is the memory of one goroutine that undoes filters: the stored bytes, and the data between two filters.
type worker struct {
	inflater stream.Inflater
	raw      []byte
	spare    [2][]byte
	piece    piece
}

// NewPool returns a pool of that many workers; 0 means GOMAXPROCS. One worker is the goroutine that calls Records or
// Gather; however many goroutines call, no more than workers decompress at a time. A worker holds up to three chunks of
// memory: the stored bytes (none if the file is mapped) and, if chunks went through several filters, the data between
// them.
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

// Workers returns how many goroutines decompress at most.
func (p *Pool) Workers() int { return cap(p.workers) }

// Close ends the helping goroutines. No Reader may be in use at that moment; afterwards the calling goroutine does all
// the work.
func (p *Pool) Close() { p.end.Do(func() { close(p.closed) }) }

// enter counts a call until leave, and reports whether it is the only call.
func (p *Pool) enter() (alone bool) { return p.callers.Add(1) == 1 }

func (p *Pool) leave() { p.callers.Add(-1) }

// invite asks up to n idle helpers. helpers counts the helpers that came. No helper is waited for: if no helper
// is idle, the caller does the work.
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
