package mirror

import (
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/remote"
)

// Stats says what a Dataset has done since Open.
type Stats struct {
	remote.Stats               // Bytes includes bytes that came more than once
	Fetched      int64         // bytes of blocks that arrived and were right
	Hits         int64         // blocks that were present when they were needed
	Waits        int64         // reads that had to wait for the store
	Waited       time.Duration // for the store, summed over goroutines
	Wrong        int64         // blocks that arrived and differed from their checksum
	Poisoned     int64         // blocks in the mirror that differed, and were fetched again
	Others       int64         // blocks that another process fetched
	Evicted      int64         // bytes that were evicted from the mirror
	Held         int64         // blocks that had to be held in memory
	LinkRate     float64       // bytes per second: the peak over a quarter of a second or more
	InFlight     int           // concurrent requests that fill the link, as far as is known
	Present      float64       // share of the wanted blocks that is here and right
	Streaming    string        // why blocks are held in memory instead of on disk; empty if they are not
}

// counts are the counters behind Stats.
type counts struct {
	fetched, hits, waits, waited, wrong, poisoned, others, evicted, held atomic.Int64
}

// Stats returns the statistics so far.
func (d *Dataset) Stats() Stats {
	c, m := &d.cache.counts, d.cache
	st := Stats{
		Stats: m.client.Stats(), Fetched: c.fetched.Load(), Hits: c.hits.Load(), Waits: c.waits.Load(),
		Waited: time.Duration(c.waited.Load()), Wrong: c.wrong.Load(), Poisoned: c.poisoned.Load(), Others: c.others.Load(),
		Evicted: c.evicted.Load(), Held: c.held.Load(), Streaming: m.memory.reason(),
	}
	m.engine.mu.Lock()
	st.LinkRate, st.InFlight = m.engine.limit.best, m.engine.limit.now
	m.engine.mu.Unlock()
	all := int64(0)
	for _, x := range m.index.grid.extents {
		if x.wanted {
			all += x.count
		}
	}
	if all > 0 {
		st.Present = 1 - float64(m.index.left.Load())/float64(all)
	}
	return st
}

// NetworkStats returns numbers for the loader's statistics: bytes that came over the network, the
// time that reads waited for them, and the highest rate in bytes per second.
func (d *Dataset) NetworkStats() (fetched int64, waited time.Duration, rate float64) {
	st := d.Stats()
	return st.Fetched, st.Waited, st.LinkRate
}
