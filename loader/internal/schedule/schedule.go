package schedule

import (
	"errors"
	"sync"
	"time"

	"github.com/penstock/penstock/internal/invariants"
)

// ErrBusy is returned by a loop that begins while another loop of the same Schedule is still being
// iterated.
var ErrBusy = errors.New("another epoch of this Loader is still being iterated; a Loader serves one at a time: leave " +
	"that loop first, or make a second Loader")

// Schedule decides who makes which batch in which slot, and when. One lock guards all of it. The
// lock is held for a few assignments at a time, never while records are read. A method whose name
// ends in Locked needs mu; every other method takes it.
type Schedule struct {
	config Config
	events eventCount

	mu    sync.Mutex
	work  sync.Cond // there may be a task: a slot came free, a pass began, or Close
	spare sync.Cond // a worker that was one too many may begin, or Close
	// ready says that the loop may continue: a batch is done, a worker is through, or the pass was
	// cancelled.
	ready   sync.Cond
	slots   slotTable
	pass    *pass    // being iterated; nil between loops
	at      Position // between loops
	resumed bool     // at was set by Seek, and nothing was iterated since
	lost    error    // why a pass was abandoned that still hangs
	alarm   *time.Timer
	kept    int
	started bool  // the workers run
	closed  error // why nothing is made any more
	spinner spinner
	pool    workerTuner
	watch   stopwatch
}

// New returns a Schedule with slots and without a loop. The window is as long as ticks that are
// under way may be apart: MaxDisplacement with Unordered, and otherwise at least the number of
// slots. No tick beyond it is begun, so that two ticks never share a place in the window.
func New(c Config) *Schedule {
	s := &Schedule{config: c, pool: newWorkerTuner(&c)}
	s.work.L, s.spare.L, s.ready.L = &s.mu, &s.mu, &s.mu
	span := MaxDisplacement
	if !c.Unordered {
		span = max(c.mostSlots(), MaxDisplacement)
	}
	s.slots = slotTable{memory: c.Slots, unordered: c.Unordered, window: make([]*slot, span)}
	s.slots.add(c.slots())
	return s
}

// tellLocked wakes the loop, whether it spins or sleeps.
func (s *Schedule) tellLocked() {
	s.events.n.Add(1)
	s.ready.Broadcast()
}

// needLocked returns how many slots the present number of workers needs.
func (s *Schedule) needLocked() int { return s.config.Prefetch + s.pool.workers + 1 }

// roomLocked reports whether another batch may be begun: a slot is free, and fewer slots are in use
// than the present workers need. The second condition keeps memory of a larger number of workers,
// tried before, out of use.
func (s *Schedule) roomLocked() bool {
	return len(s.slots.free) > 0 && s.slots.used() < s.needLocked()
}

// assignStepLocked gives the next tick a slot, or returns nil if there is no tick or no slot. Ticks
// are assigned in order: otherwise later batches could take all slots, and the batch that the loop
// waits for would never be made.
func (s *Schedule) assignStepLocked(p *pass) *slot {
	p.skip()
	if p.next >= p.end || !s.roomLocked() || p.next-p.front.low >= len(s.slots.window) {
		return nil
	}
	b, t := s.slots.assign(p.next), p.spanOf(p.next)
	b.epoch, b.step, b.opens = t.order, t.step(p.next), p.opening
	p.next++
	p.filling++
	return b
}

// staffLocked puts another number of workers to work, and adds slots for them. If memory is short,
// the number stays, and no larger one is tried again. Batches that are under way were made by the
// old number of workers, and are left out of the measurement.
func (s *Schedule) staffLocked(p *pass) {
	more := max(0, s.needLocked()-len(s.slots.all))
	if s.slots.add(more) < more { // memory is short
		s.pool.workers, s.pool.most = s.pool.home, s.pool.home
	}
	s.pool.restart(p.next - p.front.low + more + 1) // the first one may touch memory that none did
	s.work.Broadcast()
	s.spare.Broadcast()
}

// sweep frees the slots of a pass that has no work under way, and ends the pass. Free takes the
// lock itself, so that sweep releases it meanwhile; nobody else can begin a pass as long as s.pass
// is set.
func (s *Schedule) sweep() {
	s.mu.Lock()
	left := s.slots.clearWindow()
	s.mu.Unlock()
	for _, number := range left {
		s.Free(number)
	}
	s.mu.Lock()
	s.lost = nil
	s.pass = nil
	s.mu.Unlock()
}

// Free makes a slot free again. The caller owns its batch until then. The batch is cleared before
// the lock is taken, because clearing may release the Source and poison memory. The last slot to be
// freed after Close frees the memory of all.
func (s *Schedule) Free(number int) {
	s.config.Slots.Clear(number)
	s.mu.Lock()
	b := s.slots.all[number]
	if b.state == kept {
		s.kept--
	}
	s.slots.putBack(b)
	if s.pass == nil || !s.pass.front.inline {
		s.work.Signal()
	}
	idle := s.closed != nil && s.slots.used() == 0
	s.checkLocked()
	s.mu.Unlock()
	if idle {
		s.config.Slots.Idle()
	}
}

// Hold is the result of Keep.
type Hold int

// The answers to Keep.
const (
	Held    Hold = iota // the batch is kept
	NotHeld             // the hold failed
	TooMany             // as many as Prefetch are kept
)

// Keep keeps the batch of the loop body. hold is called with the lock held, and decides by
// compare-and-swap whether the caller still has the batch: another goroutine may release it at the
// same time.
func (s *Schedule) Keep(number int, hold func() bool) Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kept == s.config.Prefetch:
		return TooMany
	case !hold():
		return NotHeld
	}
	s.slots.all[number].state = kept
	s.kept++
	s.checkLocked()
	return Held
}

// Kept returns the numbers of the kept slots.
func (s *Schedule) Kept() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots.kept()
}

// At returns the Schedule's position, and whether Seek set the position and nothing was iterated
// since.
func (s *Schedule) At() (at Position, resumed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass != nil {
		return s.pass.position(), false
	}
	return s.at, s.resumed
}

// Seek moves the Schedule to the Position that find returns, unless a loop is being iterated. find
// runs with the lock held, so that no loop begins meanwhile.
func (s *Schedule) Seek(find func() (Position, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass != nil {
		return ErrBusy
	}
	at, err := find()
	if err == nil {
		s.at, s.resumed = at, true
	}
	return err
}

// Times returns the times measured so far.
func (s *Schedule) Times() Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.watch.times
	t.Waits = s.watch.waits.quantiles()
	t.Workers, t.MaxWorkers, t.Prefetch = s.pool.home, s.pool.most, s.config.Prefetch
	t.Kept = s.kept
	return t
}

// Closing is the state in which Close found a Schedule.
type Closing struct {
	Kept []int // slots that are kept
	Lost error // why a loop was abandoned whose worker still hangs; else nil
}

// Close ends the pending work with a cause, and ends all workers. It does not wait. It returns
// false if the Schedule was closed before.
func (s *Schedule) Close(cause error) (found Closing, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return found, false
	}
	s.closed = cause
	s.spare.Broadcast()
	found.Kept = s.slots.kept()
	if s.pass != nil {
		s.pass.fail(cause)
	}
	s.work.Broadcast()
	s.tellLocked()
	found.Lost = s.lost
	return found, true
}

// IsIdle reports whether all slots are free.
func (s *Schedule) IsIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots.used() == 0
}

// checkLocked checks the invariants, in checked builds.
func (s *Schedule) checkLocked() {
	if !invariants.Enabled {
		return
	}
	inWindow := 0
	for _, b := range s.slots.window {
		if b != nil {
			inWindow++
		}
	}
	var counts [kept + 1]int
	p, underWay := s.pass, 0
	for _, b := range s.slots.all {
		counts[b.state]++
		if b.state == filling {
			underWay += max(1, b.pieces.left)
		}
		if (b.state == filling || b.state == done) && (s.slots.at(b.tick) != b || p == nil || b.tick < p.front.low ||
			b.tick >= p.next) {
			panic("loader: schedule: a slot that is filling or done is not in the window at its tick")
		}
	}
	switch {
	case counts[filling]+counts[done] != inWindow:
		panic("loader: schedule: a slot in the window is neither filling nor done")
	case counts[free] != len(s.slots.free):
		panic("loader: schedule: the free slots are not those in the free list")
	case counts[kept] != s.kept || s.kept > s.config.Prefetch:
		panic("loader: schedule: more slots are kept than may be, or than were counted")
	case p != nil && (p.next > p.end || p.filling != underWay):
		panic("loader: schedule: the next tick of a pass is beyond its end, or the work under way is not what was counted")
	}
}
