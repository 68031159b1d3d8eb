package loader

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
)

// slotTable is where the slots are.
type slotTable struct {
	slots   []*slot
	free    []*slot
	surplus int     // slots that were added and will end when they come free
	window  []*slot // the tick t that is being filled or done is at t % len(window)
}

// scheduler says who makes which batch in which slot. Workers take tasks from it, and the loop
// takes batches that are done. A method that ends in Locked needs mu; every other one takes it.
type scheduler struct {
	set    *setup
	index  slotMaker
	events eventCount

	mu    sync.Mutex
	work  sync.Cond // there may be a task: a slot came free, a pass began, or Close
	spare sync.Cond // a worker that was one too many may begin, or Close
	// ready says that the loop may go on: a batch is done, a worker is through, or the pass was
	// cancelled.
	ready sync.Cond
	slotTable
	pass    *pass // being iterated; nil between loops
	at      position
	resumed bool  // at is where a State said, and nothing was iterated since
	lost    error // why a pass was abandoned that still hangs
	alarm   *time.Timer
	kept    int
	started bool // the goroutines run
	closed  bool
	tuner   prefetchTuner
	pool    workerTuner
	stats   statistics
}

// slotMaker makes the slot with a number in the ring.
type slotMaker func(index int) *slot

// eventCount counts what the consumer may wait for. It has cache lines of its own, as the consumer looks at
// it while workers write to what else a Loader has.
type eventCount struct {
	_ cpu.CacheLinePad
	atomic.Uint64
	_ cpu.CacheLinePad
}

// init makes the slots, without memory for batches.
func (c *scheduler) init(ld *Loader) {
	c.set = ld.setup
	c.index = func(i int) *slot { return &slot{index: i, batch: ld.plan.NewBatch(i)} }
	c.work.L, c.spare.L, c.ready.L = &c.mu, &c.mu, &c.mu
	c.stats.Cores, c.stats.LocalSize = ld.cores(), max(1, ld.opts.World.LocalSize)
	_, c.stats.HostCores = machineClock()
	c.tuner, c.pool = newPrefetchTuner(&ld.opts), newWorkerTuner(&ld.opts)
	c.addSlotsLocked(ld.opts.slots())
	span := maxDisplacement
	if !ld.opts.Unordered {
		span = max(ld.opts.mostSlots(), maxDisplacement)
	}
	c.window = make([]*slot, span)
}

// addSlotsLocked adds up to n slots, and returns how many there was memory for.
func (c *scheduler) addSlotsLocked(n int) int {
	added := c.set.ring.Extend(n)
	for _, i := range added {
		s := c.index(i)
		c.slots = append(c.slots, s)
		c.free = append(c.free, s)
	}
	return len(added)
}

// taskKind says what a worker does next.
type taskKind int

const (
	noTask    taskKind = iota // it waits
	endTask                   // the Loader is closed
	batchTask                 // it makes a batch
	pieceTask                 // it fills a piece of a batch that is split
)

// task is a batch to make, or a piece of one to fill.
type task struct {
	kind  taskKind
	p     *pass
	s     *slot
	piece int // of a pieceTask
}

// assign waits for a task of w. Steps are assigned in order, so that all before p.next have a
// slot: whatever is kept, the step that the consumer waits for gets done.
func (c *scheduler) assign(w *worker) task {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.add(w.filler.TakeCost(), c.set.plan.Fields)
	var since time.Duration
	for {
		t := c.taskLocked(w.id)
		if t.kind != noTask {
			if since > 0 {
				c.stats.Idle += c.set.now() - since
			}
			return t
		}
		if w.id >= c.pool.workers && !c.closed {
			c.spare.Wait()
			continue
		}
		if since == 0 {
			since = c.set.now()
		}
		c.tuner.full = c.tuner.full || c.shortLocked(w.id)
		c.work.Wait()
	}
}

// taskLocked returns what there is to do for a worker.
func (c *scheduler) taskLocked(worker int) task {
	p := c.pass
	switch {
	case p != nil && p.split != nil:
		return p.pieceLocked()
	case c.closed:
		return task{kind: endTask}
	case p == nil || p.inline || p.opening && p.next > 0 || worker >= c.pool.workers:
		return task{}
	}
	if s := c.assignStepLocked(p); s != nil {
		return task{kind: batchTask, p: p, s: s}
	}
	return task{}
}

// shortLocked reports whether a worker has nothing to do but for want of a free buffer.
func (c *scheduler) shortLocked(worker int) bool {
	p := c.pass
	return p != nil && !p.inline && !p.opening && worker < c.pool.workers && p.next < p.end && !c.roomLocked()
}

// roomLocked reports whether another batch may be begun: there is a free buffer, and no more are in
// use than the present workers need.
func (c *scheduler) roomLocked() bool {
	return len(c.free) > 0 && len(c.slots)-len(c.free) < c.needLocked()
}

// alone reports whether the pool has no workers.
func (c *scheduler) alone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.workers == 0
}

// needLocked returns how many slots the present workers need.
func (c *scheduler) needLocked() int { return c.tuner.prefetch + c.pool.workers + 1 }

// pieceLocked hands out a piece of the batch that is split.
func (p *pass) pieceLocked() task {
	t := task{pieceTask, p, p.split, p.split.pieces.given}
	p.split.pieces.given++
	if p.split.pieces.given == p.split.pieces.n {
		p.split = nil
	}
	return t
}

// assignStepLocked gives the next step a slot, or returns nil if there is no step or no slot.
func (c *scheduler) assignStepLocked(p *pass) *slot {
	p.skipLocked()
	if p.next >= p.end || !c.roomLocked() || p.next-p.low >= len(c.window) {
		return nil
	}
	last := len(c.free) - 1
	s := c.free[last]
	c.free = c.free[:last]
	s.state = slotFilling
	s.tick, s.part = p.next, p.partOf(p.next)
	s.step = s.part.step(s.tick)
	s.opens = p.opening
	c.window[s.tick%len(c.window)] = s
	p.next++
	p.filling++
	return s
}

// open lets the other workers begin.
func (c *scheduler) open(p *pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.opening = false
	c.work.Broadcast()
}

// divide lets the other workers begin with the first batch of a pass: it splits that into
// pieces, so that all make it together and the consumer has it as soon as it can be. It
// reports whether there is something to split.
func (c *scheduler) divide(p *pass, s *slot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.opening = false
	c.work.Broadcast()
	n := min(c.pool.workers, s.batch.Len())
	if n < 2 {
		return false
	}
	s.pieces = pieces{n: n, left: n}
	p.split = s
	p.filling += n - 1
	return true
}

// pieceDone takes over a piece that w filled, and reports whether it was the last one of s. The error of the first
// record stays.
func (c *scheduler) pieceDone(p *pass, s *slot, lo int, err error, w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.add(w.filler.TakeCost(), c.set.plan.Fields)
	if err != nil && (s.err == nil || lo < s.pieces.errAt) {
		s.err, s.pieces.errAt = err, lo
	}
	if s.pieces.left--; s.pieces.left == 0 {
		return true
	}
	p.filling--
	return false
}

// filled takes over a batch that w made or failed to make, for s.err. After a failure no later
// step is begun.
func (c *scheduler) filled(p *pass, s *slot, w *worker) {
	c.mu.Lock()
	w.filler.Rest()
	c.stats.add(w.filler.TakeCost(), c.set.plan.Fields)
	s.state = slotDone
	p.filling--
	if w.filler.IsCold() && c.pool.storage(func() bool { return c.fromStorageLocked(p) }) {
		c.staffLocked(p)
	}
	if s.opens && p.opening { // it ended before it began
		p.opening = false
		c.work.Broadcast()
	}
	if s.err != nil {
		s.err = c.set.batchError(s.part.order.Number, s.step, s.err)
		p.end = min(p.end, p.next)
	}
	if s.tick == p.low || p.filling == 0 || c.set.opts.Unordered {
		c.tellLocked()
	}
	returned := p.abandoned && p.filling == 0
	c.mu.Unlock()
	if returned {
		c.sweep(p)
	}
}

// fromStorageLocked reports whether most of what was read came from storage. Memory that is mapped for the first time is slow,
// too, and the program itself may be read.
func (c *scheduler) fromStorageLocked(p *pass) bool {
	return c.stats.Storage+storageRead()-p.start.used.storage > max(1<<20, c.stats.ReadBytes/2)
}

// finishedLocked returns a slot that may be handed out now, or nil.
func (c *scheduler) finishedLocked(p *pass) *slot {
	last := p.low + 1
	if c.set.opts.Unordered {
		last = min(p.next, p.parts[0].end())
	}
	for tick := p.low; tick < last; tick++ {
		if c.doneLocked(tick) {
			return c.window[tick%len(c.window)]
		}
	}
	return nil
}

// doneLocked reports whether the batch of a tick is made.
func (c *scheduler) doneLocked(tick int) bool {
	s := c.window[tick%len(c.window)]
	return s != nil && s.state == slotDone
}

// readyLocked returns how many batches can be handed out before one that is not done.
func (c *scheduler) readyLocked(p *pass) (n int) {
	if c.set.opts.Unordered {
		for tick := p.low; tick < p.next; tick++ {
			if c.doneLocked(tick) {
				n++
			}
		}
		return n
	}
	p.reach = max(p.reach, p.low)
	for p.reach < p.next && c.doneLocked(p.reach) {
		p.reach++
	}
	return p.reach - p.low
}

// tellLocked says that there may be what the loop waits for.
func (c *scheduler) tellLocked() {
	c.events.Add(1)
	c.ready.Broadcast()
}

// recycle makes a slot free again, or ends it if it is one too many. The caller owns it.
func (c *scheduler) recycle(s *slot) {
	s.clear()
	c.mu.Lock()
	if s.state == slotKept {
		s.keptAt = ""
		c.kept--
	}
	s.state = slotFree
	ends := c.endsLocked(s)
	if !ends {
		c.free = append(c.free, s)
		c.cameFreeLocked()
	}
	last := c.closed && len(c.free) == len(c.slots)
	c.mu.Unlock()
	if ends {
		c.set.ring.GiveBack(s.index)
	}
	if last {
		c.set.ring.Free() // an unmapping that fails leaves memory mapped, which harms nobody
	}
}

// endsLocked takes s out of the slots if it is one too many.
func (c *scheduler) endsLocked(s *slot) bool {
	if c.surplus == 0 || s.index < c.set.opts.slots() {
		return false
	}
	c.surplus--
	c.slots = slices.DeleteFunc(c.slots, func(other *slot) bool { return other == s })
	return true
}

// cameFreeLocked wakes a worker, if one is needed, for a slot.
func (c *scheduler) cameFreeLocked() {
	if c.pass == nil || !c.pass.inline {
		c.work.Signal()
	}
}

// sweep frees the slots of a pass of which nothing is under way.
func (c *scheduler) sweep(p *pass) {
	for i, s := range c.window {
		if s != nil {
			c.window[i] = nil
			c.recycle(s)
		}
	}
	c.mu.Lock()
	c.lost = nil
	c.pass = nil
	c.mu.Unlock()
}

// tuneLocked counts a batch that is handed out now, and does what the tuners decide.
func (c *scheduler) tuneLocked(p *pass, now time.Duration) {
	wait := c.stats.Wait - c.stats.Starts
	if c.pool.open() && c.pool.count(wait+c.stats.Body, wait, c.steadyLocked(p)) {
		c.staffLocked(p)
	}
	if t := &c.tuner; !p.inline && t.open() {
		c.tunePrefetchLocked(p, now, wait)
	}
}

// steadyLocked reports whether the workers make batches as they will for most of the pass: not so when it begins and ends.
// Of a short one, all batches count.
func (c *scheduler) steadyLocked(p *pass) bool {
	need := c.needLocked()
	return p.inline || p.delivered > need && p.next < p.end || p.delivered+p.end-p.low < 4*need
}

// staffLocked has another number of workers at work. Batches that were begun before say nothing of them.
func (c *scheduler) staffLocked(p *pass) {
	more := max(0, c.needLocked()-(len(c.slots)-c.surplus))
	if c.addSlotsLocked(more) < more { // memory is short
		c.pool.workers, c.pool.most = c.pool.home, c.pool.home
	}
	c.pool.restart(p.next - p.low + more + 1) // the first one may touch memory that none did
	c.work.Broadcast()
	c.spare.Broadcast()
}

func (c *scheduler) tunePrefetchLocked(p *pass, now, wait time.Duration) {
	t := &c.tuner
	if t.spare() > 0 && p.next < p.end && p.delivered > len(c.slots) {
		t.noteReady(c.readyLocked(p))
	}
	switch t.count(now, wait, c.needLocked()) {
	case deepen:
		c.deepenLocked()
	case giveBack:
		c.surplus += t.giveBack()
		c.free = slices.DeleteFunc(c.free, func(s *slot) bool {
			ends := c.endsLocked(s)
			if ends {
				c.set.ring.GiveBack(s.index)
			}
			return ends
		})
	}
}

// deepenLocked has twice as many batches kept ready, or as many more as there is memory for.
func (c *scheduler) deepenLocked() {
	more := c.tuner.more()
	left := min(more, c.surplus) // those that have not ended yet
	c.surplus -= left
	c.tuner.deepened(left+c.addSlotsLocked(more-left), more)
	c.work.Broadcast()
}
