package fill

import (
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
)

// Cost counts the work of a Filler.
type Cost struct {
	Sampler   time.Duration // in the Sampler, of batches that are not known to be one run
	Read      time.Duration // in the Source
	SlowRead  time.Duration // of that, in reads that were slower than memory is
	Transform time.Duration
	Collate   time.Duration
	Bytes     int64 // that were read
	Skipped   int   // records that the Policy passed over
	Slowest   Slowest
}

// Add adds what another Filler did, or the same one later.
func (c *Cost) Add(other *Cost) {
	c.Sampler += other.Sampler
	c.Read += other.Read
	c.SlowRead += other.SlowRead
	c.Transform += other.Transform
	c.Collate += other.Collate
	c.Bytes += other.Bytes
	c.Skipped += other.Skipped
	if other.Slowest.Took > c.Slowest.Took {
		c.Slowest = other.Slowest
	}
}

// Slowest is the record that took longest to be read and converted.
type Slowest struct {
	Field  int
	Record int
	Among  int // how many records of a batch, from this one on, were timed together
	Took   time.Duration
}

// stopwatch measures what a Filler does.
type stopwatch struct {
	clock func() time.Duration
	at    time.Duration   // when it last looked at the clock; 0 if not yet for this batch
	pace  []time.Duration // by field: what the last records took each, to read and convert
	fresh bool            // no batch was read yet
	bound time.Duration   // what the reads of this batch should take at most if its records are in memory
	late  time.Duration   // by how much slower reads of this batch exceeded their bounds
	cold  bool            // the last batch was not read at the speed of memory
	last  []int           // the records that this batch read last; its next field usually reads the same ones
	runs  int             // of last
	cost  Cost
}

// slow reports whether this batch was not read at the speed of memory. One read in a thousand that the system
// interrupted does not make it slow: the next batch would be announced, at a call per run of records and field.
func (w *stopwatch) slow() bool { return w.fresh || w.late > w.bound/lateShare }

// restart forgets the reads of the last batch.
func (w *stopwatch) restart() { w.fresh, w.bound, w.late, w.last = false, 0, 0, nil }

// begin looks at the clock if w has not yet for this batch. The time between two steps, or
// between the caller's own look and the first of them, counts as the step's.
func (w *stopwatch) begin() {
	if w.at == 0 {
		w.at = w.clock()
	}
}

// lap returns the time since w last looked at the clock. Steps without a gap take the end
// of one as the beginning of the next: a look takes as long as a small record.
func (w *stopwatch) lap() time.Duration {
	before := w.at
	w.at = w.clock()
	return w.at - before
}

// Upper bounds of reading from memory: a look-up per run of records, and the copying. A batch that exceeds them by less
// than a lateShare of their sum was read from memory.
const (
	warmRun   = 5 * time.Microsecond
	warmSpeed = 4 // bytes per nanosecond
	lateShare = 16
)

// countRuns returns how many runs of consecutive records there are.
func (w *stopwatch) countRuns(indices []int) int {
	if len(indices) == 0 || len(indices) == len(w.last) && &indices[0] == &w.last[0] {
		return w.runs
	}
	w.last, w.runs = indices, 0
	for rest := indices; len(rest) > 0; rest = rest[order.RunLength(rest):] {
		w.runs++
	}
	return w.runs
}

// read notes how long it took to read a field of some records.
func (w *stopwatch) read(took time.Duration, indices []int, bytes int) {
	w.cost.Read += took
	w.cost.Bytes += int64(bytes)
	bound := time.Duration(bytes / warmSpeed)
	if took > bound {
		bound += time.Duration(w.countRuns(indices)) * warmRun
	}
	w.bound += bound
	if took > bound {
		w.late += took - bound
		w.cost.SlowRead += took
	}
}

// Looking at the clock takes as long as a small record. So it is looked at twice for as many
// records as should take pieceTime, a hundred times as long as two looks: when the first of them
// was read, and when all are done.
const (
	pieceTime = 16 * time.Microsecond
	mostTimed = 64 // records at most: any of them may be the slow one
)

// together returns how many records of field f are timed as one, by what the last ones took.
func (w *stopwatch) together(f int) int {
	return min(mostTimed, int(max(1, pieceTime/max(1, w.pace[f]))))
}

// record notes how long a record, or among records from it on, took to be read and converted.
func (w *stopwatch) record(field, record, among int, took time.Duration) {
	if took > w.cost.Slowest.Took {
		w.cost.Slowest = Slowest{field, record, among, took}
	}
}

// progress says what a Filler works on, for a goroutine that waits for it; -1 is nothing.
type progress struct {
	on                  bool // somebody wants to know
	slot, field, record atomic.Int64
}

// set notes a record of a field of a batch. It costs nothing unless somebody wants to know.
func (m *progress) set(slot, field, record int) {
	if !m.on {
		return
	}
	m.field.Store(int64(field))
	m.record.Store(int64(record))
	m.slot.Store(int64(slot))
}
