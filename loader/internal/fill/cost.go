package fill

import (
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
)

// Cost sums the time and bytes of a Filler, by kind of work.
type Cost struct {
	Sampler   time.Duration // in the Sampler, for batches that are not known to be one run
	Read      time.Duration // in the Source
	SlowRead  time.Duration // part of Read in reads slower than memory
	Transform time.Duration
	Collate   time.Duration
	Bytes     int64 // bytes read
	Skipped   int   // records that the Policy replaced or blanked
	Slowest   Slowest
}

// Add adds the work of another Filler, or of a later period of the same Filler.
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

// stopwatch measures the work of one Filler, and judges whether reads came from memory or from
// storage. It belongs to the Filler's goroutine and takes no lock; MoveCost hands the sums over.
type stopwatch struct {
	clock func() time.Duration
	at    time.Duration   // latest reading of the clock; 0 if not yet read for this batch
	pace  []time.Duration // by field: time per record to read and convert, in the latest batch
	fresh bool            // no batch was read yet
	bound time.Duration   // upper bound for the reads of this batch if its records are in memory
	late  time.Duration   // sum of the times by which reads of this batch exceeded their bounds
	cold  bool            // the last batch was not read at the speed of memory
	last  []int           // records that countRuns counted last; the next field usually has the same
	runs  int             // runs in last
	cost  Cost
}

// slow reports whether this batch was read more slowly than memory allows. A small excess is
// tolerated: one read in a thousand that the system interrupted would otherwise make the next batch
// announce its reads, at a system call per run of records and field.
func (w *stopwatch) slow() bool { return w.fresh || w.late > w.bound/lateShare }

// restart forgets the reads of the last batch.
func (w *stopwatch) restart() { w.fresh, w.bound, w.late, w.last = false, 0, 0, nil }

// begin reads the clock unless it was read for this batch already. Time between two steps, or
// between the caller's own reading and the first step, then counts as part of the following step.
func (w *stopwatch) begin() {
	if w.at == 0 {
		w.at = w.clock()
	}
}

// lap returns the time since the last reading of the clock, and reads it again. The end of one step
// is the beginning of the next: a reading takes as long as a small record.
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

// countRuns returns how many runs of consecutive records the list has. All fields of a batch pass
// the same list, so that the count of the last list is kept, and recognized by its address and
// length.
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

// read records that reading bytes of one field took some time, and compares the time with an upper
// bound for memory. The runs are counted only if the copying alone does not explain the time,
// because counting visits every record number.
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

// Looking at the clock takes as long as a small record. So the clock is read only twice for a
// run of records: after the first record, and after the last. The run has as many records as
// should take pieceTime, a hundred times as long as both readings of the clock.
const (
	pieceTime = 16 * time.Microsecond
	mostTimed = 64 // records at most: any of them may be the slow one
)

// together returns how many records of field f are timed as one piece: as many as should take
// pieceTime at the pace of the last batch. A field with slow records is therefore timed record by
// record, and its slowest record is known exactly.
func (w *stopwatch) together(f int) int {
	return min(mostTimed, int(max(1, pieceTime/max(1, w.pace[f]))))
}

// record remembers the slowest record so far. Only the first record of a piece and the piece's
// length are known.
func (w *stopwatch) record(field, record, among int, took time.Duration) {
	if took > w.cost.Slowest.Took {
		w.cost.Slowest = Slowest{field, record, among, took}
	}
}

// progress publishes what a Filler works on, for the goroutine that watches Options.Timeout. -1
// means nothing. The three values are separate atomics: a watcher may combine values of two
// records, but only while the Filler makes progress, and then nothing hangs.
type progress struct {
	on                  bool // somebody wants to know
	slot, field, record atomic.Int64
}

// set publishes the current record. Without a Timeout nobody watches, and set does not pay for the
// atomic stores. slot is stored last, so that a watcher that finds its slot sees at least this
// field and record.
func (m *progress) set(slot, field, record int) {
	if !m.on {
		return
	}
	m.field.Store(int64(field))
	m.record.Store(int64(record))
	m.slot.Store(int64(slot))
}
