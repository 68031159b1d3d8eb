package schedule

import (
	"context"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
)

// Kind says what a worker does next.
type Kind int

// The kinds of tasks.
const (
	none  Kind = iota // it waits
	End               // the Schedule is closed
	Batch             // it makes a batch
	Piece             // it fills a piece of a batch that is split
)

// Task is a batch to make, or a piece of one to fill.
type Task struct {
	Kind   Kind
	Ctx    context.Context // done when nobody wants the batch any more
	Slot   int
	Tick   int
	Epoch  *order.Epoch
	Step   int
	Opens  bool // the other workers wait for Open, Divide or Done
	Inline bool // the loop makes it
	Warm   bool // and found that it is a view of warm memory

	Piece  int // of a batch that is split
	Pieces int // that it was split into
}

// taskOf returns the task of making the batch of b.
func taskOf(p *pass, b *slot) Task {
	return Task{Kind: Batch, Ctx: p.ctx, Slot: b.number, Tick: b.tick, Epoch: b.epoch, Step: b.step, Opens: b.opens,
		Inline: b.inline, Warm: b.inline && p.front.warm}
}

// Assign waits for a task for the worker with a number from 0 on. Workers beyond the present number
// wait on a condition of their own, so that they are not woken for every slot.
func (s *Schedule) Assign(worker int) Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var since time.Duration
	for {
		t := s.taskLocked(worker)
		if t.Kind != none {
			if since > 0 {
				s.watch.times.Idle += s.config.Clock() - since
			}
			s.checkLocked()
			return t
		}
		if worker >= s.pool.workers && s.closed == nil {
			s.spare.Wait()
			continue
		}
		if since == 0 {
			since = s.config.Clock()
		}
		s.work.Wait()
	}
}

// taskLocked returns what a worker should do now. Pieces of a split batch come before everything
// else: the consumer waits for that batch.
func (s *Schedule) taskLocked(worker int) Task {
	p := s.pass
	switch {
	case p != nil && p.split != nil:
		return p.piece()
	case s.closed != nil:
		return Task{Kind: End}
	case p == nil || p.front.inline || p.opening && p.next > 0 || worker >= s.pool.workers:
		return Task{}
	}
	if b := s.assignStepLocked(p); b != nil {
		return taskOf(p, b)
	}
	return Task{}
}

// piece hands out the next piece of the split batch.
func (p *pass) piece() Task {
	b := p.split
	t := taskOf(p, b)
	t.Kind, t.Piece, t.Pieces = Piece, b.pieces.given, b.pieces.n
	if b.pieces.given++; b.pieces.given == b.pieces.n {
		p.split = nil
	}
	return t
}

// Open lets the other workers begin. The worker of the first batch calls it when that batch takes
// next to nothing to make.
func (s *Schedule) Open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openLocked()
}

func (s *Schedule) openLocked() {
	s.pass.opening = false
	s.work.Broadcast()
}

// Divide splits the batch in a slot into pieces and lets the other workers begin with them: the
// first batch of a loop is made by all workers together, since the consumer waits for it. It
// reports whether there was something to split; the slot then is not the caller's any more.
func (s *Schedule) Divide(number, records int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openLocked()
	n := min(s.pool.workers, records)
	if n < 2 {
		return false
	}
	b := s.slots.all[number]
	b.pieces = pieces{n: n, left: n}
	s.pass.split = b
	s.pass.filling += n - 1
	s.checkLocked()
	return true
}

// PieceDone takes back a piece that begins with record lo, and reports whether it was the last
// piece: its worker then hands the batch over by Done. Of several errors the error with the
// lowest record stays, so that the reported record does not depend on timing.
func (s *Schedule) PieceDone(number, lo int, err error) (last bool, first error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.slots.all[number]
	if err != nil && (b.err == nil || lo < b.pieces.errAt) {
		b.err, b.pieces.errAt = err, lo
	}
	if b.pieces.left--; b.pieces.left == 0 {
		return true, b.err
	}
	s.pass.filling--
	s.checkLocked()
	return false, nil
}

// Cost is what a worker found about the reads of a batch.
type Cost int

// The costs.
const (
	Low  Cost = iota
	Cold      // this batch and the one before it were slower to read than memory is
)

// Done takes back a batch that a worker made, or failed to make for err. After a failure no later
// step is begun; batches before the failed one are still delivered. The loop is woken only if it
// can continue now: a wake-up for every batch made in advance would be a system call each.
func (s *Schedule) Done(number int, cost Cost, err error) {
	s.mu.Lock()
	b, p := s.slots.all[number], s.pass
	b.state, b.err = done, err
	p.filling--
	if cost == Cold && s.pool.storage(p.reads) {
		s.staffLocked(p)
	}
	if b.opens && p.opening { // it ended before it began
		s.openLocked()
	}
	if err != nil {
		p.end = min(p.end, p.next)
	}
	if b.tick == p.front.low || p.filling == 0 || s.config.Unordered {
		s.tellLocked()
	}
	returned := p.abandoned && p.filling == 0
	s.checkLocked()
	s.mu.Unlock()
	if returned {
		s.sweep()
	}
}
