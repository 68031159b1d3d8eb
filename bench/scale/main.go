// Command scale puts the arithmetic of docs/scale.md to the test: what a dataset of 10^9 records
// and 100 TB, made by 1,000 workers and read by 1,024 ranks, asks of manifests, orders, caches,
// object stores and workers. It measures with the code of penstock as far as one machine can:
// manifests of up to a million shards, orders of 10^9 records. The rest is simulated
// with those orders, from numbers that are flags.
//
//	scale [-only metadata,orders,caches,work,training,cost,host] [-records 1000000000] [-bytes 100000] ...
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

// scenario is the dataset, who makes it and who reads it.
type scenario struct {
	records     int     // of the dataset
	recordBytes int     // of one record, as it is read in training
	workers     int     // that preprocess
	ranks       int     // that train
	ranksHost   int     // ranks of one host, which share its cache
	batch       int     // records of a rank's batch
	rate        float64 // records/s that one rank trains on
	cache       float64 // bytes of a host's cache
	sampleCost  float64 // seconds of one core that preprocess takes for a sample
	interrupted float64 // interruptions of a worker, each hour
	get, list   float64 // dollars for 1,000 requests
	shards      int     // of the largest manifest
	roundTrip   float64 // seconds of a request to the store
	atOnce      int     // requests of a rank at a time

	photoCost, keepCost, smallCost float64 // seconds of a core for a sample, see costs
	mergePhoto, mergeSmall         float64 // for a record that a merge copies
}

func (s scenario) bytes() float64 { return float64(s.records) * float64(s.recordBytes) }

func (s scenario) hosts() int { return s.ranks / s.ranksHost }

func main() {
	var s scenario
	only := flag.String("only", "", "parts to do, with commas between: metadata, orders, caches, work, training, cost, "+
		"host; default: all")
	flag.IntVar(&s.records, "records", 1e9, "records of the dataset")
	flag.IntVar(&s.recordBytes, "bytes", 100_000, "bytes of a record")
	flag.IntVar(&s.workers, "workers", 1000, "workers that preprocess")
	flag.IntVar(&s.ranks, "ranks", 1024, "ranks that train")
	flag.IntVar(&s.ranksHost, "ranks-per-host", 8, "ranks that share a host's cache")
	flag.IntVar(&s.batch, "batch", 32, "records of a rank's batch")
	flag.Float64Var(&s.rate, "rate", 2000, "records/s of a rank")
	flag.Float64Var(&s.cache, "cache", 7e12, "bytes of a host's cache")
	flag.Float64Var(&s.sampleCost, "sample-cost", 0.003, "seconds of a core that one sample takes to be prepared")
	flag.Float64Var(&s.interrupted, "interruptions", 0.05, "interruptions of a worker in an hour")
	flag.Float64Var(&s.get, "get-price", 0.0004, "dollars for 1,000 GET requests")
	flag.Float64Var(&s.list, "list-price", 0.005, "dollars for 1,000 LIST or PUT requests")
	flag.IntVar(&s.shards, "shards", 1_000_000, "shards of the largest manifest")
	flag.Float64Var(&s.roundTrip, "round-trip", 0.03, "seconds of a request to the store")
	flag.IntVar(&s.atOnce, "at-once", 32, "requests of a rank at a time")
	flag.Float64Var(&s.photoCost, "photo-cost", 0.0012, "seconds of a core to decode, resize and store a photo")
	flag.Float64Var(&s.keepCost, "keep-cost", 0.0006, "seconds of a core to store a photo as it is")
	flag.Float64Var(&s.smallCost, "small-cost", 20e-6, "seconds of a core to store a record of 4 KB")
	flag.Float64Var(&s.mergePhoto, "merge-photo", 125e-6, "seconds of a core to merge a record of 150 KB")
	flag.Float64Var(&s.mergeSmall, "merge-small", 13e-6, "seconds of a core to merge a record of 4 KB")
	flag.Parse()
	if err := run(s, *only); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(s scenario, only string) error {
	if s.ranks%s.ranksHost != 0 {
		return fmt.Errorf("-ranks %d is no multiple of -ranks-per-host %d", s.ranks, s.ranksHost)
	}
	fmt.Printf("%s\n%d records of %d bytes: %s; %d workers; %d ranks on %d hosts\n\n",
		measure.Machine(), s.records, s.recordBytes, size(s.bytes()), s.workers, s.ranks, s.hosts())
	for _, p := range []struct {
		name string
		do   func(scenario) error
	}{{"metadata", metadata}, {"orders", orders}, {"caches", caches}, {"work", work}, {"training", training},
		{"cost", costs}, {"host", host}} {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		if err := p.do(s); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// table writes a heading and a table.
func table(heading string, rows [][]string) {
	fmt.Printf("## %s\n\n", heading)
	measure.Table(os.Stdout, rows)
}

// size writes bytes as disks and networks are sold.
func size(bytes float64) string { return scaled(bytes, "B") }

// scaled writes a number with a decimal prefix.
func scaled(x float64, unit string) string {
	for _, p := range []struct {
		of   float64
		name string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= p.of {
			return fmt.Sprintf("%.3g %s%s", x/p.of, p.name, unit)
		}
	}
	return fmt.Sprintf("%.3g %s", x, unit)
}
