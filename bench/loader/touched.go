package main

import (
	"os"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// touched compares epochs of both datasets, in order or shuffled, with the peers, and with a loop
// that does no more than must be; everyone touches every cache line of every batch.
func (b *bench) touched(order string) error {
	var o sampler.Sampler = sampler.Sequential{}
	limit := (*plain).reading
	if order == "shuffled" {
		o, limit = sampler.Shuffle{}, (*plain).copying
	}
	for _, d := range b.sets {
		if !strings.Contains(d.name, b.o.match) {
			continue
		}
		p, err := newPlain(d)
		if err != nil {
			return err
		}
		list, loaders, err := contenders(d, true, []variant{
			{"penstock, 1 worker", loader.Options{Sampler: o, Workers: 1}},
			{"penstock, no goroutine", loader.Options{Sampler: o, Workers: loader.Synchronous}},
			{"penstock, 2 workers", loader.Options{Sampler: o, Workers: 2}},
		})
		if err == nil {
			err = b.against(d, order, "touch", append(list, limit(p)), loaders)
		}
		closeAll(loaders)
		if err != nil {
			return err
		}
	}
	return nil
}

// normalize compares shuffled batches of images as normalized float32, half of them mirrored, with the peers.
func (b *bench) normalize() error {
	d := b.sets[1]
	ts, err := normalized()
	if err != nil {
		return err
	}
	list, loaders, err := contenders(d, false, []variant{
		{"penstock, 1 worker", loader.Options{Sampler: sampler.Shuffle{}, Workers: 1, Transforms: ts}},
		{"penstock, no goroutine", loader.Options{Sampler: sampler.Shuffle{}, Workers: loader.Synchronous, Prefetch: 3,
			Transforms: ts}},
	})
	defer closeAll(loaders)
	if err != nil {
		return err
	}
	return b.against(d, "shuffled", "normalize", list, nil)
}

// against measures penstock and all peers that do the same work, and prints a table.
func (b *bench) against(d *dataset, order, work string, list []measure.Contender, loaders []*loader.Loader) error {
	for _, w := range b.peerWays {
		if !strings.HasPrefix(w.Name, order+" "+work+" ") {
			continue
		}
		c := measure.Contender{Name: w.Text, Do: b.python.Doing(w.Name, d.name)}
		if strings.Contains(w.Name, "one by one") {
			c.Items = min(d.n, 1<<14)
		}
		list = append(list, c)
	}
	results, err := measure.Rounds(b.o.rounds, d.n, d.n, list)
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Epoch/"+order+"/"+work+"/"+d.name, "record", results)
	rows := [][]string{{order + ", " + d.name + "-byte records, " + work, "records/s", "GB/s",
		"vs penstock, fastest rounds", "vs penstock, clock", "vs penstock, CPU", "bytes copied a batch"}}
	for i, r := range results {
		row := append([]string{r.Name}, rate(r, d.size())...)
		row = append(row, fastest(r, results[0]), r.Over(results[0], measure.Wall).String(),
			r.Over(results[0], measure.CPU).String(), "-")
		if i < len(loaders) {
			row[6] = copied(loaders[i])
		}
		rows = append(rows, row)
	}
	measure.Table(os.Stdout, rows)
	return nil
}
