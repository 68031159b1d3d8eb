package main

import (
	"fmt"
	"math"
	"time"

	"github.com/penstock/penstock/loader/sampler"
)

// training simulates the start and the epochs of all hosts on a dataset in a bucket.
func training(s scenario) error {
	share, rate := s.cache/s.bytes(), s.rate*float64(s.ranks)
	batch := simulated / steps
	rows := [][]string{{"order", "hits, epoch 1", "epoch 2", "epoch 5", "GETs/s, epoch 1", "epoch 2", "epoch 5",
		"a host fetches, epoch 1", "epoch 2", "a host's link, epoch 2", "first batch after"}}
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
		hits := hitRates(s, p.order, p.run, share, 5)
		gets := func(epoch int) string { return scaled((1-hits[epoch])*rate/float64(p.run), "") }
		host := s.bytes() / float64(s.hosts())
		began := time.Now()
		p.order.Epoch(s.records, 42, 0)
		first := s.start(p.run) + time.Since(began).Seconds()
		rows = append(rows, []string{
			p.name, percent(hits[0]), percent(hits[1]), percent(hits[4]), gets(0), gets(1), gets(4), size((1 - hits[0]) * host),
			size((1 - hits[1]) * host),
			size((1-hits[1])*rate*float64(s.recordBytes)/float64(s.hosts())) + "/s", fmt.Sprintf("%.2f s", first),
		})
	}
	table(fmt.Sprintf("%d hosts of %d ranks at %.0f records/s, caches of %s (%.0f %% of the data; simulated with the "+
		"orders), %.0f ms a request, %d requests of a rank at a time",
		s.hosts(), s.ranksHost, s.rate, size(s.cache), 100*share, 1000*s.roundTrip, s.atOnce), rows)
	return nil
}

// start returns the seconds until a rank has its first batch of a dataset that it has not seen: the manifest is read
// and decoded, with what was measured for each of its shards, then metadata and records are fetched.
func (s scenario) start(run int) float64 {
	const shardBytes, manifestBytes, decode = 1e9, 660, 5e-6
	shards := math.Ceil(s.bytes() / shardBytes)
	rounds := func(requests float64) float64 { return math.Ceil(requests/float64(s.atOnce)) * s.roundTrip }
	requests := math.Max(1, float64(s.batch)/float64(run))
	return s.roundTrip + shards*(manifestBytes/1e9+decode) + rounds(2*math.Min(shards, requests)) + rounds(requests) +
		float64(s.batch*s.recordBytes)/1e9
}
