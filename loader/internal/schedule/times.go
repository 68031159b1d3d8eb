package schedule

import (
	"math/bits"
	"time"
)

// LittleWait is the part of a loop's time for which it may wait for batches: less is not worth fixing.
const LittleWait = 0.05

// Share returns part as a fraction of whole.
func Share(part, whole time.Duration) float64 { return float64(part) / float64(max(1, whole)) }

// Times is how long the loops and the workers of a Schedule spent waiting and working.
type Times struct {
	Epochs     int           // epochs begun
	Wait       time.Duration // total time that loops waited for batches
	Starts     time.Duration // part of Wait for the first batches of loops
	Waits      Quantiles     // of the waits for one batch
	Ready      int           // batches that were ready when they were asked for
	Body       time.Duration // time that loop bodies had a batch
	FirstBatch time.Duration // from the start of the latest loop to its first batch
	Idle       time.Duration // time that workers waited for a slot or for the next loop
	Late       Late          // the longest wait for a batch that was not the first of its loop

	Workers, MaxWorkers int // that make batches, as found so far; at most
	Prefetch            int // finished batches that may wait
	Kept                int // batches kept now
}

// Quantiles are times that a given percentage of all does not exceed, up to an eighth more than
// they are.
type Quantiles struct{ P50, P95, P99, Max time.Duration }

// Late is the batch that a loop waited for longest.
type Late struct {
	Epoch, Batch int
	Wait         time.Duration
}

// stopwatch measures loops. The Schedule's lock guards it.
type stopwatch struct {
	times Times
	waits histogram
}

// waited records how long the loop of p waited for its next batch s, or for the end of the pass if
// s is nil. First batches of a loop are counted apart: nothing could be made in advance for them.
func (w *stopwatch) waited(p *pass, s *slot, wait time.Duration) {
	w.waits.add(wait)
	if s == nil {
		return
	}
	w.times.Wait += wait
	if p.delivered == 0 {
		w.times.Starts += wait
		return
	}
	if late := &w.times.Late; wait > late.Wait {
		*late = Late{s.epoch.Number, s.step, wait}
	}
}

// leaveBody records how long the loop body had its batch.
func (w *stopwatch) leaveBody(p *pass, now time.Duration) {
	if p.handed > 0 {
		w.times.Body += now - p.handed
		p.handed = 0
	}
}

// histogram counts durations in eight buckets per factor of two, so that a quantile is at most an
// eighth too large, and an epoch of any length needs the same memory.
type histogram struct {
	counts [64 * 8]uint32
	n      int
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(0, d)))]++
	h.n++
	h.max = max(h.max, d)
}

// bucket returns the number of the bucket of ns. Buckets 0 to 7 hold one value each.
func bucket(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	shift := bits.Len64(ns) - 4
	return (shift+1)*8 + int(ns>>shift&7)
}

// ceiling returns the largest duration of a bucket.
func ceiling(b int) time.Duration {
	if b < 8 {
		return time.Duration(b)
	}
	shift := b/8 - 1
	return time.Duration((uint64(b%8)+9)<<shift - 1)
}

// quantile returns an upper bound of the share q of the measured durations: the end of the bucket of
// the histogram that contains the quantile.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q * float64(h.n))
	for b, c := range h.counts {
		if rank -= int(c); rank < 0 {
			return min(ceiling(b), h.max)
		}
	}
	return h.max
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{h.quantile(0.50), h.quantile(0.95), h.quantile(0.99), h.max}
}
