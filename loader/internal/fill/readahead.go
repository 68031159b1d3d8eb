package fill

import (
	"context"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/loader/internal/order"
)

// Records are read before they are needed in three ways, each for another distance. announce names the records of
// batches that no Filler has yet to a Source that fetches over a network. readAhead asks storage for the records of
// this Filler's next batch. queue brings the next records of a batch into the CPU's cache.

// Announce names the records of a step to a Source that fetches over a network, and reports whether
// later steps should be announced too. After an error they should not. Announce drops errors and
// panics on purpose: the read of the same records follows, and reports them with batch and record.
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

// foresee returns the records of a coming step, in room. If the Sampler fails, or names records
// that do not exist, foresee returns nil: the Filler that makes that batch reports the error in its
// turn.
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

// prefetchBytes is the largest size that one call announces. It keeps storage busy until the Filler gets
// to that batch and announces the rest; many reads at once keep the kernel, and so other goroutines, from
// their CPUs.
const prefetchBytes = 2 << 20

// readAhead keeps storage busy with a Filler's next batch while the Filler fills the current one.
type readAhead struct {
	plan     *Plan
	upcoming []int // room for the record numbers of a batch
}

// next asks the Source to start reading the front of the batch that this Filler will probably make
// after b. With n workers that take turns, this is the batch n steps later.
//
// The request costs a system call per run of records, so that it is made only while reads are
// slower than memory. Single records that are gathered are not announced: the Source has enough
// reads of a batch under way anyway, and announcing their pages as well made it slower.
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

// prefetch announces each run of records in each field, up to prefetchBytes in all.
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

// gathers reports whether Gather reads a record together with others. Copied fields are always
// gathered. Converted fields are gathered only while batches are cold: from warm memory a function
// reads the Source's bytes in place, and a gather would add a copy. Records are read one by one if
// a Timeout has to name the record that hangs, or if they are longer than what a Filler may stage.
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

// queue requests the stored bytes of the records that are converted next, so that the CPU loads
// them into its cache while it converts the current record. Records of a shuffled epoch are far
// apart, where the CPU cannot predict the next address.
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

// start requests the first q.depth of places [lo, hi) of a field. Small records are requested
// further ahead than large ones: depth times the record size stays near queueBytes, and never
// exceeds the slots of the queue.
func (q *queue) start(b *Batch, fd *Field, lo, hi int) {
	clear(q.src[:])
	q.end = hi
	q.depth = min(max(1, queueBytes/max(1, fd.Stored)), queueRecords-1)
	for i := lo; i < min(lo+q.depth, hi); i++ {
		q.ask(fd, i, b.indices[i])
	}
}

// advance requests the record q.depth places after i.
func (q *queue) advance(b *Batch, fd *Field, i int) {
	if next := i + q.depth; next < q.end {
		q.ask(fd, next, b.indices[next])
	}
}

// take returns the bytes of place i if they were staged or requested, and nil otherwise.
func (q *queue) take(i int) []byte {
	if q.staged != nil {
		at := (i - q.first) * q.size
		return q.staged[at : at+q.size : at+q.size]
	}
	src := q.src[i%queueRecords]
	q.src[i%queueRecords] = nil
	return src
}

// ask loads a record's first bytes into the cache if its memory is warm. Anything else is left to
// the record's own turn: a page fault or an error here would be charged to the record that is being
// converted.
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
