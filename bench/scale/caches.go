package main

import (
	"container/list"
	"fmt"

	"github.com/penstock/penstock/loader/sampler"
)

// How many records the dataset is scaled down to, and the caches with it: what a cache hits
// depends on the ratio of the two, which is kept. An epoch has that many global batches then.
const (
	simulated = 1 << 20
	steps     = 16
)

// caches simulates one host's cache for some epochs.
func caches(s scenario) error {
	share := s.cache / s.bytes()
	rows := [][]string{{"order, through caches", "randomness of a global batch", "hits, epoch 2", "epoch 5", "epoch 20",
		"fetched by all hosts, epoch 20", "GETs/s", "each host's link"}}
	rate := s.rate * float64(s.ranks)
	batch := simulated / steps
	for _, p := range []struct {
		name  string
		order sampler.Sampler
		run   int
	}{
		{"Shuffle", sampler.Shuffle{}, 1},
		{"Block(64)", sampler.Block{Size: 64}, 64},
		{fmt.Sprintf("Regions(%d)", s.hosts()), sampler.Regions{Count: s.hosts(), Batch: batch}, 1},
		{fmt.Sprintf("Regions(%d) of Block(64)", s.hosts()), sampler.Regions{Count: s.hosts(), Batch: batch,
			Inner: sampler.Block{Size: 64}}, 64},
	} {
		hits := hitRates(s, p.order, p.run, share, 20)
		miss := 1 - hits[19]
		rows = append(rows, []string{
			p.name, fmt.Sprintf("%.3f", sampler.Randomness(p.order, simulated, batch, 42)),
			percent(hits[1]), percent(hits[4]), percent(hits[19]), size(miss * s.bytes()),
			scaled(miss*rate/float64(p.run), ""), size(miss*rate*float64(s.recordBytes)/float64(s.hosts())) + "/s",
		})
	}
	table(fmt.Sprintf("Caches of %d hosts with room for %s, %.0f %% of the data: LRU, each rank its slice of every "+
		"global batch (simulated with the orders, %d records, %d batches an epoch)",
		s.hosts(), size(s.cache), 100*share, simulated, steps), rows)
	return nil
}

// hitRates returns, for each epoch, the share of the first host's reads that its cache has.
// Records of a run are read, and kept, together.
func hitRates(s scenario, order sampler.Sampler, run int, share float64, epochs int) []float64 {
	c := newLRU(max(1, int(share*simulated)/run))
	dst := make([]int, simulated/steps/s.hosts()) // of the host in a global batch
	rates := make([]float64, epochs)
	for epoch := range epochs {
		seq := order.Epoch(simulated, 42, epoch)
		hits, reads := 0, 0
		for pos := 0; pos+len(dst) <= seq.Len(); pos += simulated / steps {
			seq.Fill(pos, dst)
			for i, r := range dst {
				if i > 0 && r/run == dst[i-1]/run {
					continue
				}
				reads++
				if c.has(r / run) {
					hits++
				}
			}
		}
		rates[epoch] = float64(hits) / float64(max(1, reads))
	}
	return rates
}

// lru is a cache of that many keys.
type lru struct {
	room int
	at   map[int]*list.Element
	used *list.List // of keys, the latest first
}

func newLRU(room int) *lru {
	return &lru{room: room, at: make(map[int]*list.Element), used: list.New()}
}

// has reports whether a key is present, and adds it.
func (c *lru) has(key int) bool {
	if e := c.at[key]; e != nil {
		c.used.MoveToFront(e)
		return true
	}
	if c.used.Len() == c.room {
		delete(c.at, c.used.Remove(c.used.Back()).(int))
	}
	c.at[key] = c.used.PushFront(key)
	return false
}
