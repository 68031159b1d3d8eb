package requests

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/remote"
)

type counts struct{ requests, retries, hedges, failures, bytes atomic.Int64 }

// Stats returns the statistics so far.
func (c *Client) Stats() remote.Stats {
	return remote.Stats{
		Requests: c.counts.requests.Load(), Retries: c.counts.retries.Load(), Hedges: c.counts.hedges.Load(),
		Failures: c.counts.failures.Load(), Bytes: c.counts.bytes.Load(),
	}
}

// mayHedge keeps hedges few: a store that is slow for everybody would get slower by them.
func (c *counts) mayHedge() bool { return c.hedges.Load() <= 2+c.requests.Load()/20 }

// pace remembers how long the latest reads took.
type pace struct {
	mu   sync.Mutex
	took [64]time.Duration // a ring, of reads as if of paceBytes
	n    int
}

// paceBytes is a size below which reads all take about as long.
const paceBytes = 256 << 10

// paceKnown is how many reads say something about the next.
const paceKnown = 16

// scale says how many times as long a read of n bytes may take.
func scale(n int) time.Duration { return time.Duration(max(1, n/paceBytes)) }

func (p *pace) add(n int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took[p.n%len(p.took)] = took / scale(n)
	p.n++
}

// late returns the time after which a read of n bytes is late: four times what nine of ten
// took.
func (p *pace) late(n int) (time.Duration, bool) {
	p.mu.Lock()
	known := slices.Clone(p.took[:min(p.n, len(p.took))])
	p.mu.Unlock()
	if len(known) < paceKnown {
		return 0, false
	}
	slices.Sort(known)
	return max(20*time.Millisecond, 4*known[len(known)*9/10]) * scale(n), true
}
