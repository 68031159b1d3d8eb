package fill

import (
	"context"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/loader/internal/order"
)

// Records are read before they are needed in three ways, each for another distance. announce names the records of
// batches that no Filler has yet to a Source that fetches over a network. readAhead asks storage for the records of
// this Filler's next batch. queue brings the next records of a batch into the CPU's cache.

// Announce names the records of a step to a Source that fetches them, and reports whether later steps may be
// announced: not after an error, which the read that follows reports.
func (p *Plan) Announce(ctx context.Context, fetch func(ctx context.Context, field string, indices []int) error,
	e *order.Epoch, step int, room []int) (more bool) {
	defer func() { _ = recover() }() // of the Source: so does the read that follows
	next := foresee(e, step, room, p.Source.Records.Len())
	if next == nil {
		return false // the Filler that gets there says why
	}
	for i := range p.Fields {
		if f := &p.Fields[i]; !f.Made() && fetch(ctx, f.In.Name, next) != nil {
			return false // the read that follows reports what is wrong
		}
	}
	return true
}

// foresee returns the records of a step, in room. If they or the Sampler have an error, it
// returns none: the Filler that makes that batch reports the error.
func foresee(e *order.Epoch, step int, room []int, records int) (next []int) {
	defer func() {
		if recover() != nil {
			next = nil
		}
	}()
	pos, n, pad := e.Slice(step)
	next = room[:n]
	e.Choose(pos, pad, next)
	if order.Outside(next, records) >= 0 {
		return nil
	}
	return next
}

// prefetchBytes is the largest size that one call asks for. It keeps storage busy until the Filler gets to
// that batch, which asks for the rest; many reads at once keep the kernel, and so other
// goroutines, from their CPUs.
const prefetchBytes = 2 << 20

// readAhead has storage work on the next batch of a Filler while it fills one.
type readAhead struct {
	plan     *Plan
	upcoming []int // room for the record numbers of a batch
}

// next asks the Source to start reading the front of the batch that this Filler will make
// after b. It costs a system call per run of records; so the caller asks only while reads are not as fast as
// memory. Nor is it asked for single records that are gathered: the Source has enough reads of a batch under way
// anyway, and announcing their pages as well made it slower.
//
// The first batches of a pass have no batch before them to announce them, and announce themselves.
func (a *readAhead) next(b *Batch, tick int, cold bool) {
	workers := max(1, a.plan.Workers)
	if tick < workers {
		a.prefetch(b.indices, cold)
	}
	if b.step+workers < b.epoch.Steps {
		a.prefetch(foresee(b.epoch, b.step+workers, a.upcoming, a.plan.Source.Records.Len()), cold)
	}
}

// prefetch announces each run of records in each field, up to prefetchBytes.
func (a *readAhead) prefetch(indices []int, cold bool) {
	size := 1
	for f := range a.plan.Fields {
		size += a.plan.Fields[f].Stored
	}
	for room := max(1, prefetchBytes/size); len(indices) > 0 && room > 0; {
		n := order.RunLength(indices)
		first := indices[0]
		for f := range a.plan.Fields {
			if fd := &a.plan.Fields[f]; !fd.Made() && (n > 1 || !a.plan.gathers(fd, first, cold)) {
				// The read that follows reports what is wrong.
				_ = a.plan.Source.Records.Prefetch(fd.In.Name, first, first+min(n, room))
			}
		}
		indices, room = indices[n:], room-n
	}
}

// gathers reports whether a record that is stored as it is, is read by Gather together with others: those that are
// copied, and those that are converted while batches are cold. If the caller wants to know which record hangs,
// they are read one by one; so are those that are longer than what a Filler may stage.
func (p *Plan) gathers(fd *Field, record int, cold bool) bool {
	return p.Source.Mapped != nil && p.Source.contiguous(fd.In.Name, record, record+1) &&
		(!fd.Converts || cold && !fd.In.Ragged && !p.OneByOne && fd.Stored <= p.Stage)
}

// Limits of what is prefetched from memory: bytes of records, number of records, and bytes from the
// front of each record. The CPU prefetches the rest of a long record automatically.
const (
	queueBytes   = 4 << 10
	queueRecords = 8
	queueFront   = 1 << 10
)

// queue holds the stored bytes of records that are about to be converted, which are under way
// to the CPU's cache meanwhile.
type queue struct {
	source *Source
	guard  *guard
	src    [queueRecords][]byte // of the place i of the batch at i % queueRecords
	depth  int                  // how many places before its turn a record is asked for
	end    int                  // of the places

	staged []byte // records of the places, from the first on; nil unless they were gathered
	first  int
	size   int // of a record there
}

// start asks for the records of the first q.depth of places [lo, hi) of a field.
func (q *queue) start(b *Batch, fd *Field, lo, hi int) {
	clear(q.src[:])
	q.end = hi
	q.depth = min(max(1, queueBytes/max(1, fd.Stored)), queueRecords-1)
	for i := lo; i < min(lo+q.depth, hi); i++ {
		q.ask(fd, i, b.indices[i])
	}
}

// advance asks for the record whose turn comes some places after i, if there is one.
func (q *queue) advance(b *Batch, fd *Field, i int) {
	if next := i + q.depth; next < q.end {
		q.ask(fd, next, b.indices[next])
	}
}

// take returns what was asked for the place i of the batch, if anything.
func (q *queue) take(i int) []byte {
	if q.staged != nil {
		at := (i - q.first) * q.size
		return q.staged[at : at+q.size : at+q.size]
	}
	src := q.src[i%queueRecords]
	q.src[i%queueRecords] = nil
	return src
}

// ask has a record of a field, whose place in the batch is i, loaded to the cache if its memory
// is warm. All else, and what fails, is read when it is its turn, so that nothing is taken for
// the time or the fault of another record.
func (q *queue) ask(fd *Field, i, record int) {
	if q.source.Mapped == nil || fd.In.Ragged {
		return
	}
	var err error
	defer q.guard.catch(&err)
	if !q.source.Mapped.IsWarm(fd.In.Name, record, record+1) {
		return
	}
	if v, err := q.source.Records.Slice(fd.In.Name, record, record+1); err == nil && v.Len() == 1 {
		src := v.Bytes()
		kernel.Prefetch(src[:min(len(src), queueFront)])
		q.src[i%queueRecords] = src
	}
}
