package main

import (
	"os"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// verified measures what it costs to compare records with their checksums: warm, shuffled epochs,
// each way by turns, of Loaders that make batches in the goroutine that asks.
func (b *bench) verified() error {
	rows := [][]string{{"shuffled, warm, verified, not touched", "ns/record", "times as long as unchecked, CPU",
		"fastest rounds"}}
	for _, d := range b.sets {
		more, err := verifying(*d, d.path(b), b.o.rounds)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// verifying compares all ways of one dataset with none.
func verifying(d dataset, path string, rounds int) (rows [][]string, err error) {
	d.times = 1
	var list []measure.Contender
	for _, way := range []struct {
		name   string
		verify mmapds.Option
	}{
		{"not", mmapds.WithVerify(mmapds.VerifyOff)},
		{"at first touch, later epochs", mmapds.WithVerify(mmapds.VerifyFirstTouch)},
		{"one block in ten", mmapds.WithVerifySample(0.1)},
		{"always", mmapds.WithVerify(mmapds.VerifyAlways)},
	} {
		if d.ds, err = mmapds.Open(path, way.verify); err != nil {
			return nil, err
		}
		defer d.ds.Close() // it was only read
		c, ld, err := epochs(d.name+"-byte records, "+way.name, &d,
			loader.Options{Sampler: sampler.Shuffle{}, Workers: loader.Synchronous}, false)
		if err != nil {
			return nil, err
		}
		defer ld.Close() // nothing was kept
		list = append(list, c)
	}
	results, err := measure.Rounds(rounds, d.n, d.n, list)
	if err != nil {
		return nil, err
	}
	measure.Lines(os.Stdout, "Verified/"+d.name, "record", results)
	for _, r := range results {
		rows = append(rows, []string{r.Name, measure.Digits(1e9 * r.Median(measure.CPU)),
			r.Over(results[0], measure.CPU).String(), measure.Digits(r.Fastest(measure.CPU) / results[0].Fastest(measure.CPU))})
	}
	return rows, nil
}
