package mirror

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// engine fetches blocks: first those that a goroutine waits for, then those that will be needed, in
// the order in which they were requested.
type engine struct {
	d *cache

	mu      sync.Mutex
	jobs    map[int64]*job // by block; from when it is asked for until it is present
	now     []*job
	later   []*job
	sent    int // jobs begun that nobody waited for
	allowed int // how many of those may have begun, while something else runs
	running int
	flying  int64 // bytes that running jobs will bring
	limit   limiter
	stopped bool
	timers  []*time.Timer // of allow
	room    sync.Cond     // there is less in later
	all     sync.WaitGroup
	unasked atomic.Int64 // wanted blocks that were not asked for, or in vain; or by other processes

	mostLater int // jobs that may be waiting
}

// job is a run of blocks that is fetched in one request.
type job struct {
	blocks
	state jobState // under the engine's mu
	done  chan struct{}
	err   error
	held  map[int64][]byte // what is not in the mirror
}

// jobState is how far a job is. It only grows.
type jobState int

const (
	jobAhead  jobState = iota // asked for in advance, in later
	jobUrgent                 // somebody waits for it: in now, and maybe in later, where it is passed over
	jobTaken                  // off the queues: under way, done, failed, or part of another job
)

// flyingBytes bounds the memory of requests under way. That many
// awaited bytes may be under way whatever the limit on requests is: a batch and what comes before it, but not
// several, which would all be late.
const (
	flyingBytes = 128 << 20
	urgentBytes = 18 << 20
)

// smallBytes is the size of a request that nobody waits for, before the speed of the link is known.
// Of smaller ones more may be under way.
const smallBytes = 512 << 10

// leading is how many requests that nobody waits for may begin three quarters of a round trip after
// the first batch was asked for: they fill the link while it is idle, from the end of the batch
// until the answers to later requests arrive.
const leading = 4

// unlimited is more requests than there are.
const unlimited = math.MaxInt

func (e *engine) init(d *cache) {
	e.d = d
	e.jobs = make(map[int64]*job)
	e.room.L = &e.mu
	e.limit = newLimiter(maxInFlight)
	e.mostLater = maxLater
	e.unasked.Store(d.index.left.Load())
}

// joins reports whether one request may include the block after blocks [from, to), too.
func (e *engine) joins(x *extent, from, to int64) bool {
	return x.joins(from, to, e.d.opts.requestBytes)
}

// demand returns the jobs of blocks that somebody waits for: the jobs under way, and new jobs for the rest. The blocks
// of along will be needed next, so the missing blocks of along are asked for, too. The blocks of one call come before
// the blocks of later calls.
func (e *engine) demand(ranges, along []blocks) (list []*job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.bridgeLocked(ranges) {
		list = e.needLocked(list, r)
	}
	for _, r := range e.bridgeLocked(along) {
		e.needLocked(nil, r)
	}
	e.pumpLocked()
	if e.allowed == 0 && e.d.trip > 0 && e.timers == nil {
		e.timers = []*time.Timer{
			time.AfterFunc(e.d.trip*3/4, func() { e.allow(leading) }),
			time.AfterFunc(e.d.trip, func() { e.allow(unlimited) }), // the batch's bytes come about now
		}
	}
	return list
}

// allow lets n requests that nobody waits for follow the first batch, so that the link has
// something to do when that is through.
func (e *engine) allow(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed = max(e.allowed, n)
	e.pumpLocked()
}

// needLocked appends the jobs of blocks, if it has not just appended them. Adjacent blocks come
// in one request, whether it was named before or not.
func (e *engine) needLocked(list []*job, r blocks) []*job {
	for b := r.from; b < r.to; b++ {
		j := e.jobs[r.x.base+b]
		if j == nil {
			j = e.addLocked(r.x, b, b+1, jobUrgent)
		}
		if j.state == jobAhead {
			j.state = jobUrgent
			e.now = append(e.now, j)
		}
		for j.state < jobTaken && j.to < r.to && e.joins(r.x, j.from, j.to) && e.absorbLocked(j, j.to, j.to, r.to) {
			j.to++
		}
		if len(list) == 0 || list[len(list)-1] != j {
			list = append(list, j)
		}
	}
	return list
}

// bridgeBytes is a gap that costs less than another request.
const bridgeBytes = 128 << 10

// bridgeLocked joins ranges that are next to one another, where what lies between them will be needed
// and is not here.
func (e *engine) bridgeLocked(ranges []blocks) []blocks {
	if len(ranges) < 2 || !e.d.index.fits || e.d.memory.active() {
		return ranges
	}
	slices.SortFunc(ranges, func(a, b blocks) int {
		return cmp.Or(cmp.Compare(a.x.base, b.x.base), cmp.Compare(a.from, b.from))
	})
	out := ranges[:1]
	for _, r := range ranges[1:] {
		last := &out[len(out)-1]
		if r.x == last.x && r.x.gap(last.to-1, r.from) <= bridgeBytes && e.absentLocked(r.x, last.to, r.from) {
			last.to = max(last.to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}

// absentLocked reports whether none of blocks [from, to) is here, or under way, or waited for.
func (e *engine) absentLocked(x *extent, from, to int64) bool {
	for b := from; b < to; b++ {
		if j := e.jobs[x.base+b]; e.d.index.state.has(x.base+b) || j != nil && j.state > jobAhead {
			return false
		}
	}
	return true
}

// crowded says what to do while more than enough is asked for.
type crowded int

const (
	waits  crowded = iota // wait, until the context is done
	leaves                // ask for no more
)

// ahead asks for blocks that will be needed.
func (e *engine) ahead(ctx context.Context, ranges []blocks, when crowded) {
	stop := context.AfterFunc(ctx, e.wake)
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range ranges {
		for b := r.from; b < r.to; b++ {
			for when == waits && len(e.later) > e.mostLater && !e.stopped && ctx.Err() == nil {
				e.room.Wait() // others may ask for the block meanwhile
			}
			if e.stopped || ctx.Err() != nil || len(e.later) > e.mostLater {
				e.pumpLocked()
				return
			}
			if e.d.index.state.has(r.x.base+b) || e.jobs[r.x.base+b] != nil || e.d.memory.get(r.x.base+b) != nil {
				continue
			}
			end := b + 1
			for end < r.to && e.joins(r.x, b, end) && !e.d.index.state.has(r.x.base+end) && e.jobs[r.x.base+end] == nil {
				end++
			}
			e.addLocked(r.x, b, end, jobAhead)
		}
	}
	e.pumpLocked()
}

func (e *engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.Broadcast()
}

// maxLater bounds what is asked for in advance, in jobs.
const maxLater = 4096

// widenLocked extends a job that is about to start by adjacent blocks that were not fetched. If the
// whole dataset fits in the cache, all of it will be needed, so larger requests cost nothing; their
// size grows with the bytes fetched so far, so that the first batches do not wait for others.
func (e *engine) widenLocked(j *job) {
	if !e.d.index.fits || e.d.memory.active() {
		return
	}
	x := j.x
	grown := e.d.counts.fetched.Load() / growth
	if j.state == jobUrgent {
		grown /= 4
	} else {
		grown = max(grown, smallBytes)
	}
	width := max(1, min(e.d.opts.requestBytes, grown)/x.typical())
	low := j.from / width * width
	high := min(max(low+width, j.to), x.count)
	for j.from > low && e.joins(x, j.from-1, j.from) && e.absorbLocked(j, j.from-1, low, high) {
		j.from--
	}
	for j.to < high && e.joins(x, j.to-1, j.to) && e.absorbLocked(j, j.to, low, high) {
		j.to++
	}
}

// growth limits a request to this fraction of what was fetched before it.
const growth = 16

// absorbLocked makes a block one of a job's, unless it is here, under way, or waited for.
func (e *engine) absorbLocked(j *job, block, low, high int64) bool {
	at := j.x.base + block
	other := e.jobs[at]
	switch {
	case e.d.index.state.has(at):
		return false
	case other == nil:
		e.unasked.Add(-1)
	case other == j || other.state > jobAhead || other.from < low || other.to > high:
		return false
	default: // nobody waits for it, and it lies in the window, so that all of it will be taken
		other.state = jobTaken
		for b := other.from; b < other.to; b++ {
			delete(e.jobs, j.x.base+b)
		}
		e.unasked.Add(other.to - other.from - 1)
	}
	e.jobs[at] = j
	return true
}

// addLocked makes a job.
func (e *engine) addLocked(x *extent, from, to int64, state jobState) *job {
	j := &job{blocks: blocks{x, from, to}, state: state, done: make(chan struct{})}
	for b := from; b < to; b++ {
		e.jobs[x.base+b] = j
	}
	e.unasked.Add(from - to)
	switch {
	case e.stopped:
		j.state = jobTaken
		e.finishLocked(j, errClosed)
	case state == jobUrgent:
		e.now = append(e.now, j)
	default:
		e.later = append(e.later, j)
	}
	return j
}

// pumpLocked starts as many jobs as may run.
func (e *engine) pumpLocked() {
	for !e.stopped {
		j := e.pickLocked()
		if j == nil {
			return
		}
		j.state = jobTaken
		_, n := j.x.span(j.from, j.to)
		e.running++
		e.flying += n
		e.all.Add(1)
		go e.run(j, n)
	}
}

// pickLocked takes the next job off its queue, if it may run. Until something came, only what is
// waited for does, so that the first batch has the link for itself.
func (e *engine) pickLocked() *job {
	for len(e.now) > 0 && e.now[0].state == jobTaken {
		e.now = e.now[1:]
	}
	if len(e.now) > 0 {
		if e.running >= e.limit.most || e.running >= e.limit.now && e.flying > urgentBytes {
			return nil
		}
		j := e.now[0]
		e.now = e.now[1:]
		e.widenLocked(j)
		return j
	}
	for len(e.later) > 0 && e.later[0].state == jobTaken {
		e.later = e.later[1:]
	}
	if len(e.later) == 0 || e.sent >= e.allowed && e.running > 0 {
		return nil
	}
	if e.fullLocked() {
		e.limit.full = true
		return nil
	}
	j := e.later[0]
	e.later = e.later[1:]
	e.room.Broadcast()
	e.widenLocked(j)
	e.sent++
	return j
}

// fullLocked reports whether enough is under way: as many requests as the limit says, or, while they
// are small, as many as bring about as much.
func (e *engine) fullLocked() bool {
	return e.running >= e.limit.most || e.flying > flyingBytes || e.running >= e.limit.now &&
		e.flying > int64(e.limit.now)*smallBytes
}

// run fetches a job in its goroutine and wakes who waits for it. If the fetch failed, the error may be one of a dataset
// that was replaced in the bucket, which tells the user more than a missing object.
func (e *engine) run(j *job, n int64) {
	defer e.all.Done()
	err := e.d.fetcher.fetch(e.d.fetches.ctx, j)
	if err != nil {
		err = e.d.fetcher.ifReplaced(e.d.fetches.ctx, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed = unlimited
	e.running--
	e.flying -= n
	e.limit.add(e.d.client.Stats().Bytes, err)
	e.finishLocked(j, err)
	e.pumpLocked()
}

// finishLocked ends a job.
func (e *engine) finishLocked(j *job, err error) {
	j.err = err
	if err != nil {
		e.unasked.Add(j.to - j.from)
	}
	for b := j.from; b < j.to; b++ {
		if e.jobs[j.x.base+b] == j {
			delete(e.jobs, j.x.base+b)
		}
	}
	close(j.done)
}

var errClosed = errors.New("mirror: the dataset is closed")

func (d *cache) closed() bool { return d.fetches.ctx.Err() != nil }

// stop fails what waits.
func (e *engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, list := range [][]*job{e.now, e.later} {
		for _, j := range list {
			if j.state < jobTaken {
				j.state = jobTaken
				e.finishLocked(j, errClosed)
			}
		}
	}
	e.now, e.later = nil, nil
	for _, t := range e.timers {
		t.Stop()
	}
	if e.room.L != nil {
		e.room.Broadcast()
	}
}

// wait stops, and waits for what is under way.
func (e *engine) wait() {
	e.stop()
	e.all.Wait()
}
