package feed

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/loader"
)

// Sentences have the names of Python's options, and none of Go's.
func TestDiagnosis(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		stats loader.Stats
		want  string
	}{
		"late batches": {
			loader.Stats{Batches: 100, Records: 6400, Workers: 2, MaxWorkers: 4, Cores: 4, Prefetch: 4, Wait: 5 * time.Second, Body: 15 * time.Second, Read: 900 * ms, ReadBytes: 1e9},
			"bursts: .*; set prefetch_factor to 15, so that more batches can wait ready",
		},
		"transforms that wait": {
			loader.Stats{Batches: 100, Records: 2000, Workers: 3, MaxWorkers: 3, Cores: 4, Wait: 1500 * ms, Body: 500 * ms, Transform: 6 * time.Second, CPU: 100 * ms},
			"transforms wait: a transform takes 3ms a record, .*, and num_workers=13 would make the loop ",
		},
		"reads that wait": {
			loader.Stats{Batches: 100, Records: 2000, Workers: 3, MaxWorkers: 3, Cores: 4, Wait: 1500 * ms, Body: 500 * ms, Read: 6 * time.Second, SlowRead: 6 * time.Second, CPU: 100 * ms},
			"reads wait: the source takes 3ms a record, .*, and num_workers=13 would",
		},
		"a worker": {
			loader.Stats{Batches: 100, Records: 2000, Workers: 1, MaxWorkers: 1, Cores: 8, Wait: 1500 * ms, Body: 500 * ms, Transform: 1900 * ms, CPU: 1900 * ms},
			"too few workers: .*num_workers=None finds",
		},
		"a slow order": {
			loader.Stats{Batches: 100, Records: 2000, Workers: 1, MaxWorkers: 1, Cores: 1, Wait: 1500 * ms, Body: 500 * ms, Sampler: 1900 * ms, CPU: 1900 * ms},
			"order-bound: .* of that with the sampler, ",
		},
		"copies": {
			loader.Stats{Batches: 100, Records: 2000, Workers: 1, MaxWorkers: 1, Cores: 1, Wait: 1500 * ms, Body: 500 * ms, Read: 1900 * ms, CPU: 1900 * ms, ReadBytes: 1e10},
			"copy-bound: .*, and samplers.Block with blocks",
		},
		"batches of a record": {
			loader.Stats{Batches: 100_000, Records: 100_000, Workers: 1, MaxWorkers: 1, Cores: 2, Wait: 50 * ms, Body: 2500 * ms, Read: 100 * ms, ReadBytes: 64e5, CPU: 3 * time.Second},
			"tiny batches: a batch of 1 records takes 25.5µs, most of it to hand it over, .*; batch_size=3 would",
		},
		"a step that is long": {
			loader.Stats{Batches: 1000, Records: 1000, Workers: 1, MaxWorkers: 1, Cores: 2, Wait: 50 * ms, Body: 2500 * ms, Read: 10 * ms, ReadBytes: 64e3, CPU: 3 * time.Second},
			"train-bound: ",
		},
	} {
		got := diagnosis(c.stats, 2)
		if !regexp.MustCompile("^" + c.want).MatchString(got) {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		for _, of := range []string{"Workers", "MaxPrefetch", "BatchSize", "Transforms", "Source", "Sampler"} {
			if strings.Contains(got, of) {
				t.Errorf("%s: %q is of Go: %s", name, of, got)
			}
		}
	}
}
