package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// open measures what comes before the first batch: opening a dataset of many records and
// shuffling them.
func (b *bench) open() error {
	d := dataset{name: "many", n: 10_000_000, shape: tensor.Shape{1, 1, 1}, batch: 256}
	path := filepath.Join(b.dir, d.name)
	if err := d.write(path); err != nil {
		return err
	}
	results, err := measure.Rounds(4*b.o.rounds, 1, 1, []measure.Contender{
		{Name: "open to first batch, shuffled, 10000000 records", Do: measure.Timed(func(int, int) error {
			return firstBatch(path, d.batch)
		})},
		{Name: "shuffle of 1000000000 records", Do: measure.Timed(func(int, int) error { shuffleSetup(); return nil })},
	})
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Open", "op", results)
	rows := [][]string{{"set-up", "ms, clock", "ms, CPU", "bytes allocated"}}
	for i, r := range results {
		row := []string{r.Name, fmt.Sprintf("%.3f", r.Median(measure.Wall)*1e3),
			fmt.Sprintf("%.3f", r.Median(measure.CPU)*1e3), "-"}
		if i == 1 {
			row[3] = fmt.Sprint(allocated(shuffleSetup))
		}
		rows = append(rows, row)
	}
	measure.Table(os.Stdout, rows)
	return nil
}

func firstBatch(path string, batch int) error {
	ds, err := mmapds.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: batch, Sampler: sampler.Shuffle{}})
	if err != nil {
		return err
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err == nil {
			runtime.KeepAlive(touch(b.Field("x").Bytes()))
		}
		return err
	}
	return nil
}

// shuffleSetup makes an order and asks it for a batch in the middle.
func shuffleSetup() {
	const n = 1_000_000_000
	var batch [256]int
	sampler.Shuffle{}.Epoch(n, 1, 2).Fill(n/2, batch[:])
	runtime.KeepAlive(batch[0])
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
