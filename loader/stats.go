package loader

import (
	"strings"
	"time"

	"github.com/penstock/penstock/internal/sys/cputime"
)

// Stats is what a Loader did since New: a snapshot of numbers, ready for expvar.Func or for
// a collector of Prometheus. Times of workers are sums over all of them.
type Stats struct {
	Epochs      int   // begun
	Batches     int   // handed to the consumer
	Records     int   // in those
	Skipped     int   // records that OnError passed over
	ViewBytes   int64 // of the batches, the bytes that are views of the Source
	CopiedBytes int64 // and the bytes that were written to buffers

	Wait       time.Duration // that the consumer waited for batches, in all
	Starts     time.Duration // of that, for the first batches of loops
	Waits      Quantiles     // of the waits for one batch
	Ready      int           // batches that were there when they were asked for
	Inline     int           // batches that the loop made itself: with Workers, views of memory that is warm, as they cost less to make than to hand over
	Body       time.Duration // that the consumer had a batch: its own work
	FirstBatch time.Duration // from the start of the latest loop to its first batch

	Sampler   time.Duration // of workers: in the Sampler, of batches that are not known to be one run
	Read      time.Duration // of workers: in the Source
	SlowRead  time.Duration // of that, in reads that were slower than memory is
	ReadBytes int64         // that were read
	Transform time.Duration // of workers: in Transforms
	Collate   time.Duration // of workers: in Collate
	CPU       time.Duration // that the whole process ran on cores while loops were iterated; 0 where the system does not tell
	Idle      time.Duration // of workers: waiting for a free buffer, or for the next loop
	Slowest   Slowest       // the record that took longest to read and transform, of fields with a Transform
	LateBatch LateBatch     // the longest wait for a batch that was not the first of its loop

	Workers   int    // goroutines at work, which MaxWorkers lets grow; 0 if batches are made by the consumer
	Prefetch  int    // finished batches that may wait: with MaxPrefetch, as many as are needed now
	Cores     int    // of this process's share when the Loader was made
	RingBytes int    // memory of the buffers; 0 as long as nothing is copied
	Pinned    int    // of those, that are page-locked, if the Allocator says so
	Unpinned  string // why they are not, if the Allocator says so: MlockedMemory does
	Kept      int    // batches kept now

	Fetched   int64         // bytes that the Source had to get over a network
	FetchWait time.Duration // of workers: waiting for them
	LinkRate  float64       // the fastest that they ever came, in bytes a second

	Reads []FieldReads // how the Source reads, if it says so
}

// Quantiles are times that so many percent of all do not exceed, up to an eighth more than
// they are.
type Quantiles struct{ P50, P95, P99, Max time.Duration }

// Slowest names a record.
type Slowest struct {
	Field  string
	Record int
	Among  int // how many records of a batch, from this one on, were timed together: as many as take some 16 µs, at least 1 and at most 64
	Took   time.Duration
}

// LateBatch names a batch.
type LateBatch struct {
	Epoch, Batch int
	Wait         time.Duration
}

// FieldReads says how a Source reads a field.
type FieldReads struct {
	Field    string
	How, Why string  // for example "mapped", "96 % of the pages are in memory"
	Resident float64 // part of the bytes that are in memory; -1 if not known
}

// unpacked reports whether records are not stored as they are, which *mmapds.Dataset calls so.
func (r FieldReads) unpacked() bool {
	return strings.Contains(r.How, "inflated") || strings.Contains(r.How, "copied")
}

// now returns the time since New, which is never 0; where nobody counts, it always is.
func (ld *Loader) now() time.Duration {
	if ld.uncounted {
		return 0
	}
	return 1 + time.Since(ld.made)
}

// begin looks at the clock if w has not yet for this batch. What little lies between two steps, or
// between the loop's own look and the first of them, counts as the step's.
func (w *worker) begin() {
	if w.at == 0 {
		w.at = w.ld.now()
	}
}

// lap returns the time since w last looked at the clock. What follows without a gap takes the end
// of one step as the beginning of the next: a look takes as long as a small record.
func (w *worker) lap() time.Duration {
	before := w.at
	w.at = w.ld.now()
	return w.at - before
}

// processClock is cputime.Process, but in tests.
var processClock = cputime.Process

// spent is what a worker did since it last told.
type spent struct {
	order, read, slow, transform, collate time.Duration
	bytes                                 int64
	skipped                               int
	slowest                               time.Duration
	slowField, slowRecord, among          int
}

// record notes how long some records took to be read and transformed, of which that is the
// first.
func (sp *spent) record(field, record, among int, took time.Duration) {
	if took > sp.slowest {
		sp.slowest, sp.slowField, sp.slowRecord, sp.among = took, field, record, among
	}
}

// add takes over what a worker did. The caller holds mu.
func (ld *Loader) add(sp *spent) {
	if ld.uncounted {
		return
	}
	st := &ld.stats
	st.Sampler += sp.order
	st.Read += sp.read
	st.SlowRead += sp.slow
	st.ReadBytes += sp.bytes
	st.Transform += sp.transform
	st.Collate += sp.collate
	st.Skipped += sp.skipped
	if sp.slowest > st.Slowest.Took {
		st.Slowest = Slowest{ld.fields[sp.slowField].in.Name, sp.slowRecord, sp.among, sp.slowest}
	}
	*sp = spent{}
}

// count adds a batch to the statistics. The caller holds mu.
func (ld *Loader) count(p *pass, s *slot) {
	if ld.uncounted {
		return
	}
	if p.delivered == 1 {
		ld.stats.FirstBatch = ld.now() - p.began
	}
	ld.stats.Batches++
	ld.stats.Records += len(s.indices)
	for f, viewing := range s.viewing {
		if n := int64(len(s.views[f].Bytes())); viewing {
			ld.stats.ViewBytes += n
		} else {
			ld.stats.CopiedBytes += n
		}
	}
}

// waited notes how long the consumer waited for its next batch. The caller holds mu.
func (ld *Loader) waited(p *pass, s *slot, wait time.Duration) {
	if ld.uncounted {
		return
	}
	ld.waits.add(wait)
	if s == nil {
		return
	}
	ld.stats.Wait += wait
	if p.delivered == 0 {
		ld.stats.Starts += wait
		return
	}
	if late := &ld.stats.LateBatch; wait > late.Wait {
		*late = LateBatch{s.part.number, s.step, wait}
	}
}

// leaveBody notes how long the consumer had its batch. The caller holds mu.
func (ld *Loader) leaveBody(p *pass, now time.Duration) {
	if p.handed > 0 {
		ld.stats.Body += now - p.handed
		p.handed = 0
	}
}

// Stats returns the counts so far. It may be called during an epoch.
func (ld *Loader) Stats() Stats {
	reads := ld.reads()
	fetched, waited, linkRate := ld.can.NetworkStats()
	ld.mu.Lock()
	defer ld.mu.Unlock()
	st := ld.stats
	if ld.pass != nil {
		st.CPU += processClock() - ld.pass.clock
	}
	st.Reads = reads
	st.Fetched, st.FetchWait, st.LinkRate = fetched-ld.fetched, waited-ld.fetchWait, linkRate
	st.Waits = ld.waits.quantiles()
	st.Workers, st.Prefetch = ld.active, ld.ahead
	st.Kept = ld.kept
	st.RingBytes = ld.ring.bytes()
	if p, ok := ld.opts.Allocator.(interface{ Pinned() bool }); ok && p.Pinned() {
		st.Pinned = st.RingBytes
	}
	if p, ok := ld.opts.Allocator.(interface{ Why() string }); ok {
		st.Unpinned = p.Why()
	}
	return st
}

// reads asks the Source how it reads.
func (ld *Loader) reads() []FieldReads {
	if ld.can.Described == nil {
		return nil
	}
	var out []FieldReads
	for i := range ld.fields {
		if f := &ld.fields[i]; !f.made() {
			how, why, resident := ld.can.Described.DescribeReads(f.in.Name)
			out = append(out, FieldReads{f.in.Name, how, why, resident})
		}
	}
	return out
}
