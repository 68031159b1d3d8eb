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

// engine decides which blocks are fetched, and when: first the blocks that a goroutine waits for,
// then blocks that will be needed, in the order in which they were requested. Methods whose name
// ends in Locked are called with mu held.
type engine struct {
	d *cache

	mu      sync.Mutex
	jobs    map[int64]*job // by block, from the request until the block is present
	now     []*job         // jobs that somebody waits for, in order
	later   []*job         // jobs in advance, in order
	sent    int            // jobs in advance that have been started
	allowed int            // how many jobs in advance may have been started while other jobs run
	running int
	flying  int64 // bytes that running jobs will bring
	limit   limiter
	stopped bool
	timers  []*time.Timer // timers that call allow
	room    sync.Cond     // signals that later has become shorter
	all     sync.WaitGroup
	unasked atomic.Int64 // wanted blocks that this process has not requested, or whose request failed

	mostLater int // limit of the queue later
}

// job is a run of adjacent blocks that is fetched in one request.
type job struct {
	blocks
	state jobState // guarded by the engine's mu
	done  chan struct{}
	err   error
	held  map[int64][]byte // blocks for which the mirror has no room
}

// jobState is the progress of a job, which never goes back.
type jobState int

const (
	jobAhead  jobState = iota // requested in advance, in the queue later
	jobUrgent                 // somebody waits for it: in now, and maybe in later, where it is passed over
	jobTaken                  // in no queue any more: under way, done, failed, or merged into another job
)

// flyingBytes limits the memory of requests under way. urgentBytes of awaited blocks may be under way whatever the
// limit on requests is: that is a batch and the blocks before it. If several batches were under way at once, all of
// them would be late.
const (
	flyingBytes = 128 << 20
	urgentBytes = 18 << 20
)

// smallBytes is the size of a request in advance before the speed of the link is known. More requests may be under way
// while they are smaller.
const smallBytes = 512 << 10

// leading is how many requests in advance may begin three quarters of a round trip after the first batch was requested.
// They fill the link while it would be idle: from the end of the batch until the answers to later requests arrive.
const leading = 4

// unlimited is more than the number of requests ever is.
const unlimited = math.MaxInt

// init prepares the engine of a cache.
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

// demand returns the jobs of blocks that a goroutine waits for: jobs under way, and new jobs for the rest. The missing
// blocks of along, which will be needed next, are requested, too. The blocks of one call come before the blocks of
// later calls.
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
			time.AfterFunc(e.d.trip, func() { e.allow(unlimited) }), // the bytes of the batch arrive about now
		}
	}
	return list
}

// allow lets n requests in advance follow the first batch, so that the link is not idle when the batch has arrived.
func (e *engine) allow(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed = max(e.allowed, n)
	e.pumpLocked()
}

// needLocked appends the jobs of blocks to list, each once. Adjacent blocks come in one request, even if some of the
// blocks were already queued in another request.
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

// bridgeBytes is the largest gap between two ranges that is cheaper to fetch than another request.
const bridgeBytes = 128 << 10

// bridgeLocked joins ranges with small gaps between them, if the gap is missing and will be needed anyway: that is
// certain only while the whole dataset fits in the cache.
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

// absentLocked reports whether none of the blocks [from, to) is present, under way, or waited for.
func (e *engine) absentLocked(x *extent, from, to int64) bool {
	for b := from; b < to; b++ {
		if j := e.jobs[x.base+b]; e.d.index.state.has(x.base+b) || j != nil && j.state > jobAhead {
			return false
		}
	}
	return true
}

// crowded says what ahead does while the queue of requests in advance is full.
type crowded int

const (
	waits  crowded = iota // wait, until the context is done
	leaves                // request no more blocks
)

// ahead requests blocks that will be needed.
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

// wake makes ahead look at its context again.
func (e *engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.Broadcast()
}

// maxLater limits the queue of requests in advance, in jobs.
const maxLater = 4096

// widenLocked extends a job that is about to start by adjacent blocks that were not fetched. If the
// whole dataset fits in the cache, all its blocks will be needed, so larger requests cost nothing;
// their size grows with the bytes fetched so far, so that the first batches do not wait for others.
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

// growth limits a request to this fraction of the bytes that were fetched before.
const growth = 16

// absorbLocked adds a block to a job, unless the block is present, under way, or waited for.
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
	default: // nobody waits for the other job, whose blocks are all in the window: this job takes them over
		other.state = jobTaken
		for b := other.from; b < other.to; b++ {
			delete(e.jobs, j.x.base+b)
		}
		e.unasked.Add(other.to - other.from - 1)
	}
	e.jobs[at] = j
	return true
}

// addLocked makes a job and puts it into its queue.
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

// pickLocked takes the next job off its queue, if it may run. Until the first answer has arrived, only awaited jobs
// run, so that the first batch has the link for itself.
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

// fullLocked reports whether enough is under way: as many requests as the limit says or, while requests are small, as
// many as bring about the same number of bytes.
func (e *engine) fullLocked() bool {
	return e.running >= e.limit.most || e.flying > flyingBytes || e.running >= e.limit.now &&
		e.flying > int64(e.limit.now)*smallBytes
}

// run fetches a job in its goroutine and wakes the goroutines that wait for it. If the fetch failed, the error may be
// that the dataset was replaced in the bucket, which tells the user more than a missing object.
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

// finishLocked ends a job. The blocks of a failed job count as not requested again.
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

// errClosed is the error of reads after Close, and of jobs that Close ends.
var errClosed = errors.New("mirror: the dataset is closed")

// closed reports whether Close was called.
func (d *cache) closed() bool { return d.fetches.ctx.Err() != nil }

// stop ends all queued jobs with an error. Jobs under way go on.
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

// wait calls stop, and waits for the jobs under way.
func (e *engine) wait() {
	e.stop()
	e.all.Wait()
}
