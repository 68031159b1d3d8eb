package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// policies are the orders that are compared: an exact shuffle, and shuffled runs.
var policies = []struct {
	name  string
	order sampler.Sampler
	run   int
}{
	{"Shuffle", sampler.Shuffle{}, 1},
	{"Block(8)", sampler.Block{Size: 8}, 8},
	{"Block(64)", sampler.Block{Size: 64}, 64},
	{"Block(512)", sampler.Block{Size: 512}, 512},
}

// orders measures an epoch's set-up, its walk and a jump into it; and what it asks of an object
// store that has no cache before it: as many requests as there are runs of neighbors.
func orders(s scenario) error {
	const seed = 42
	global := s.batch * s.ranks
	state, err := json.Marshal(loader.State{Version: 1, Epoch: 1000, Step: s.records / global, Seed: 1 << 63})
	if err != nil {
		return err
	}
	rows := [][]string{{"order, no cache", "set-up", "a record", "a jump", "randomness of a batch", "of a global batch",
		"GETs an epoch", "price of them", "GETs/s at full rate", "bytes of each"}}
	for _, p := range policies {
		began := time.Now()
		seq := p.order.Epoch(s.records, seed, 1)
		setup := time.Since(began)
		walk, jump := walked(seq)
		gets := float64(s.records) / float64(p.run)
		rows = append(rows, []string{
			p.name, setup.String(), fmt.Sprintf("%.0f ns", walk), jump.Round(10 * time.Nanosecond).String(),
			fmt.Sprintf("%.3f", sampler.Randomness(p.order, s.records, s.batch, seed)),
			fmt.Sprintf("%.3f", sampler.Randomness(p.order, s.records, global, seed)),
			scaled(gets, ""), fmt.Sprintf("$%.2f", gets/1000*s.get),
			scaled(s.rate*float64(s.ranks)/float64(p.run), ""), size(float64(s.recordBytes * p.run)),
		})
	}
	table(fmt.Sprintf("Orders of %d records (measured), and their requests without any cache (state: %d bytes of JSON)",
		s.records, len(state)), rows)
	return nil
}

// walked returns nanoseconds a record in order, and the time of a jump to anywhere.
func walked(seq sampler.Sequence) (walk float64, jump time.Duration) {
	const n, jumps = 1 << 20, 1000
	dst := make([]int, 1024)
	began := time.Now()
	for pos := 0; pos < min(n, seq.Len())-len(dst); pos += len(dst) {
		seq.Fill(pos, dst)
	}
	walk = float64(time.Since(began).Nanoseconds()) / float64(min(n, seq.Len()))
	began = time.Now()
	for range jumps {
		seq.Fill(rand.IntN(seq.Len()), dst[:1])
	}
	return walk, time.Since(began) / jumps
}
