package feed

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/bottleneck"
)

// Sentences of all kinds have the names of Python's options, and none of Go's.
func TestDiagnosis(t *testing.T) {
	ms := time.Millisecond
	// a loop that waits for three quarters of its time, for one worker on the only core
	base := loader.Stats{Batches: 100, Records: 2000, Workers: 1, MaxWorkers: 1, Cores: 1, Prefetch: 4, Wait: 1500 * ms, Body: 500 * ms}
	with := func(change func(s *loader.Stats)) loader.Stats {
		s := base
		change(&s)
		return s
	}
	waits := with(func(s *loader.Stats) { s.Workers, s.MaxWorkers, s.Cores, s.CPU = 3, 3, 4, 100*ms })
	kinds := make(map[bottleneck.Kind]bool)
	for _, c := range []struct {
		kind  bottleneck.Kind
		stats loader.Stats
		want  string
	}{
		{bottleneck.TooEarly, with(func(s *loader.Stats) { s.Batches = 3 }), "3 batches so far"},
		{bottleneck.TrainBound, with(func(s *loader.Stats) { s.Wait = ms }), "training waits 0 %"},
		{bottleneck.OtherPrograms, with(func(s *loader.Stats) { s.HostCores, s.CPU, s.Others = 1, 500*ms, 1500*ms }), "they take 0.8 of"},
		{bottleneck.TransformBound, with(func(s *loader.Stats) { s.Transform, s.CPU = 1900*ms, 1900*ms }), "950µs a record"},
		{bottleneck.TransformWaits, with(func(s *loader.Stats) { *s = waits; s.Transform = 6 * time.Second }),
			"a transform takes 3ms a record, .*, and num_workers=13 would make the loop "},
		{bottleneck.RemoteBound, with(func(s *loader.Stats) { s.Read, s.FetchWait, s.LinkRate = 1900*ms, 1800*ms, 1e8 }), "the link's peak is 100 MB/s"},
		{bottleneck.ColdStorage, with(func(s *loader.Stats) { s.Read, s.SlowRead, s.Storage = 1900*ms, 1900*ms, 1e9 }), "which gives 500 MB/s"},
		{bottleneck.ReadsWait, with(func(s *loader.Stats) { *s = waits; s.Read, s.SlowRead = 6*time.Second, 6*time.Second }),
			"the source takes 3ms a record, .*, and num_workers=13 would"},
		{bottleneck.ReadsWait, with(func(s *loader.Stats) { s.Read, s.SlowRead, s.CPU, s.ReadBytes = 1900*ms, 1900*ms, 1900*ms, 1e6 }),
			"with the source, which takes 950µs a record"},
		{bottleneck.DecodeBound, with(func(s *loader.Stats) {
			s.Read, s.CPU, s.Reads = 1900*ms, 1900*ms, []loader.FieldReads{{Field: "x", How: "inflated", Why: "gzip"}}
		}), `unpacking "x" \(gzip\)`},
		{bottleneck.OrderBound, with(func(s *loader.Stats) { s.Sampler, s.CPU = 1900*ms, 1900*ms }), "of that with the sampler, "},
		{bottleneck.CopyBound, with(func(s *loader.Stats) { s.Read, s.CPU, s.ReadBytes = 1900*ms, 1900*ms, 1e10 }), "and samplers.Block with blocks"},
		{bottleneck.Straggler, with(func(s *loader.Stats) { s.LateBatch = loader.LateBatch{Batch: 7, Wait: 1400 * ms} }), "batch 7 of epoch 0"},
		{bottleneck.TooFewWorkers, with(func(s *loader.Stats) { s.Transform, s.CPU, s.Cores = 1900*ms, 1900*ms, 8 }), "num_workers=None finds"},
		{bottleneck.TooFewWorkers, with(func(s *loader.Stats) { s.Transform, s.CPU, s.Cores = 1900*ms, 3000*ms, 2 }), "only 1.5 of 2 cores"},
		{bottleneck.TinyBatches, with(func(s *loader.Stats) { s.Batches, s.Records, s.Read, s.ReadBytes = 100_000, 100_000, 100*ms, 64e5 }),
			"a batch of 1 records takes 20µs, most of it to hand it over, .*; batch_size=5 would"},
		{bottleneck.TinyBatches, loader.Stats{Batches: 100_000, Records: 100_000, Workers: 1, MaxWorkers: 1, Cores: 2, Wait: 50 * ms,
			Body: 2500 * ms, Read: 100 * ms, ReadBytes: 64e5, CPU: 3 * time.Second}, "a batch of 1 records takes 25.5µs, .*; batch_size=3 would"},
		{bottleneck.TrainBound, loader.Stats{Batches: 1000, Records: 1000, Workers: 1, MaxWorkers: 1, Cores: 2, Wait: 50 * ms,
			Body: 2500 * ms, Read: 10 * ms, ReadBytes: 64e3, CPU: 3 * time.Second}, "loading faster gains no more"},
		{bottleneck.Bursts, with(func(s *loader.Stats) { s.Read = 100 * ms }), "prefetch_factor=15 would let more batches wait ready"},
		{bottleneck.Bursts, with(func(s *loader.Stats) { s.Read, s.Prefetch = 100*ms, 200 }), "prefetch_factor=127 would"}, // the most
	} {
		kinds[c.kind] = true
		got := diagnosis(c.stats, 2)
		if !strings.HasPrefix(got, string(c.kind)+":") && !strings.HasPrefix(got, string(c.kind)+", at") || !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s\nwant %s: %s", got, c.kind, c.want)
		}
		for _, of := range []string{"Workers", "Prefetch", "BatchSize", "Transform", "Source", "Sampler", " Block"} {
			if strings.Contains(got, of) {
				t.Errorf("%s: %q is of Go: %s", c.kind, of, got)
			}
		}
	}
	if len(kinds) != 15 {
		t.Errorf("%d kinds of sentences, not all 15", len(kinds))
	}
}

// The times of a client's loops say how those of the loader are divided. Wrong ones change nothing.
func TestTimesOfTheClient(t *testing.T) {
	ms := time.Millisecond
	s := loader.Stats{Wait: 1000 * ms, Starts: 200 * ms, Body: 200 * ms, LateBatch: loader.LateBatch{Batch: 3, Wait: 20 * ms}}
	late := loader.LateBatch{Epoch: 1, Batch: 7, Wait: 50}
	got := times{Wait: 100, Body: 300, Late: late}.divide(s)
	if got.Wait != 450*ms || got.Body != 750*ms || got.LateBatch != (loader.LateBatch{Epoch: 1, Batch: 7, Wait: 125 * ms}) {
		t.Errorf("%+v", got)
	}
	if got := (times{Wait: 100, Body: 300}).own(got); got.Wait != s.Starts+100 || got.Body != 300 {
		t.Errorf("counters of %+v", got)
	}
	for _, wrong := range []times{{}, {Late: late}, {Wait: -5, Body: 10}, {Wait: 5, Body: -10}} {
		if got := wrong.divide(s); got.Wait != s.Wait || got.Body != s.Body || got.LateBatch != s.LateBatch {
			t.Errorf("%+v: %+v", wrong, got)
		}
	}
	if got := (times{Wait: 1 << 62, Body: 1 << 62, Late: loader.LateBatch{Wait: 1 << 62}}).divide(s); got.Wait != 700*ms || got.Body != 500*ms {
		t.Errorf("much: %+v", got)
	}
}
