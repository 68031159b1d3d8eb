package loader_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/bottleneck"
	"github.com/penstock/penstock/loader/sampler"
)

// stage is a loop with a bottleneck, simulated by sleeps: in a bubble of synctest they take
// exactly their time, whatever else the machine does.
type stage struct {
	cores, workers int
	order          sampler.Sampler                   // nil means Shuffle
	read           func(indices []int) time.Duration // of field x
	transform      func(record int) time.Duration
	body           time.Duration
	burns          bool // a core, in transform
}

func (s stage) run(t *testing.T) loader.Stats {
	m := newMemorySource(2000, 4000)
	m.before = func(_ context.Context, field string, indices []int) error {
		if field == "x" && s.read != nil {
			time.Sleep(s.read(indices))
		}
		return nil
	}
	var burnt atomic.Int64
	defer loader.SetProcessClock(func() time.Duration { return time.Duration(burnt.Add(1)) })()
	o := loader.Options{BatchSize: 20, Sampler: s.order, Workers: s.workers}
	if o.Sampler == nil {
		o.Sampler = sampler.Shuffle{}
	}
	if s.transform != nil {
		o.Transforms = map[string]loader.Transform{"x": negate{func(r loader.Record) error {
			time.Sleep(s.transform(r.Index))
			if s.burns {
				burnt.Add(int64(s.transform(r.Index)))
			}
			return nil
		}}}
	}
	var ld *loader.Loader
	withProcs(s.cores, func() { ld = open(t, m, o) })
	n, err := run(t.Context(), ld, func(loader.Batch) { time.Sleep(s.body) })
	if n != 100 || err != nil {
		t.Fatalf("%d batches, then %v", n, err)
	}
	return ld.Stats()
}

func each(d time.Duration) func([]int) time.Duration {
	return func(indices []int) time.Duration { return d * time.Duration(len(indices)) }
}

func always(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

func TestDiagnose(t *testing.T) {
	for name, c := range map[string]struct {
		stage    stage
		want     bottleneck.Kind
		text     []string
		min, max float64 // gain
	}{
		"slow consumer": {
			stage{cores: 4, workers: 3, read: each(10 * time.Microsecond), body: 10 * time.Millisecond},
			bottleneck.TrainBound, []string{"waits 0 % of the time for batches; loading faster gains no more than that"}, 1, 1.01,
		},
		"slow transform": {
			stage{cores: 3, workers: 3, transform: always(3 * time.Millisecond), body: 7 * time.Millisecond, burns: true},
			bottleneck.TransformBound, []string{"3 workers are busy for ", "100 % of that with transforming, 3ms a record", "in preprocess"}, 0, 0,
		},
		"workers on the cores of training": {
			stage{cores: 2, workers: 2, transform: always(time.Millisecond), body: 10200 * time.Microsecond, burns: true},
			bottleneck.TransformBound, []string{"waits 1 % of the time", "2 workers are busy for 97 % and take cores from it, 100 % of that with transforming"}, 0, 0,
		},
		"waiting transform": {
			stage{cores: 4, workers: 3, transform: always(3 * time.Millisecond), body: 5 * time.Millisecond},
			bottleneck.TransformWaits, []string{"a Transform takes 3ms a record, but the process used 0.0 of 4 cores", "Workers 13 would make the loop 3.7x faster"}, 3.5, 4.5,
		},
		"waiting reads": {
			stage{cores: 4, workers: 3, read: each(4 * time.Millisecond), body: 5 * time.Millisecond},
			bottleneck.ReadsWait, []string{"the Source takes 4ms a record", "Workers 17"}, 4.5, 6.5,
		},
		"one straggler": {
			stage{cores: 4, workers: 3, body: 5 * time.Millisecond, transform: func(r int) time.Duration {
				if r == 1234 {
					return 3 * time.Second
				}
				return 10 * time.Microsecond
			}},
			bottleneck.Straggler, []string{`record 1234, whose "x" took 3s`}, 6, 7,
		},
		"too few workers": {
			stage{cores: 8, workers: 1, transform: always(time.Millisecond), body: 5 * time.Millisecond, burns: true},
			bottleneck.TooFewWorkers, []string{"only 1.0 of 8 cores; Workers 0 finds"}, 0, 0,
		},
		"copy-bound": {
			stage{cores: 1, workers: 1, read: each(4 * time.Microsecond), body: 25 * time.Microsecond},
			bottleneck.CopyBound, []string{"1 worker is busy for ", "Block"}, 0, 0,
		},
		"synchronous": {
			stage{cores: 4, workers: loader.Synchronous, transform: always(time.Millisecond), body: 5 * time.Millisecond, burns: true},
			bottleneck.TooFewWorkers, []string{"the loop, which makes its batches itself, is busy for 81 %, but only 0.8 of 4 cores; Workers 0 finds"}, 0, 0,
		},
		"synchronous, and nothing else to do": {
			stage{cores: 1, workers: loader.Synchronous, transform: always(time.Millisecond), body: 500 * time.Microsecond, burns: true},
			bottleneck.TransformBound, []string{"100 % of that with transforming, 1ms a record; do steps that are not random once, in preprocess"}, 0, 0,
		},
		"slow order": {
			stage{cores: 1, workers: 1, order: slowly(time.Millisecond), body: 10 * time.Millisecond},
			bottleneck.OrderBound, []string{"1 worker is busy for 100 %, 100 % of that with the Sampler, 1ms a record; without that the loop would be 99 % faster"}, 1.9, 2.1,
		},
		"bursts": {
			stage{cores: 3, workers: 2, body: 10 * time.Millisecond, transform: func(r int) time.Duration {
				if r%100 == 0 {
					return 50 * time.Millisecond
				}
				return 0
			}},
			bottleneck.Bursts, []string{"Prefetch 16 would let"}, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := c.stage.run(t)
				got := st.Diagnose()
				t.Logf("%.2f: %v", got.Gain, got)
				if got.Bottleneck != c.want || got.Gain < c.min || got.Gain > c.max || !strings.HasPrefix(got.String(), string(c.want)) {
					t.Errorf("%+v; want %v with a gain of %v to %v, of %+v", got, c.want, c.min, c.max, st)
				}
				for _, text := range c.text {
					if !strings.Contains(got.Text, text) {
						t.Errorf("%q lacks %q", got.Text, text)
					}
				}
			})
		})
	}
}

// TestDiagnosePromises follows the advice of Diagnose, and compares the loop's speed with the gain that it foretold.
func TestDiagnosePromises(t *testing.T) {
	ms := time.Millisecond
	workers := func(s stage, advice string) stage { // the number that the advice names
		_, after, _ := strings.Cut(advice, "and Workers ")
		fmt.Sscan(after, &s.workers)
		return s
	}
	instant := func(s stage, _ string) stage {
		s.order, s.read, s.transform = nil, nil, nil
		return s
	}
	uneven := func(record int) time.Duration { return time.Duration(1+record*7919%5) * ms } // 3 ms on average
	for name, c := range map[string]struct {
		stage  stage
		want   bottleneck.Kind
		follow func(s stage, advice string) stage
	}{
		"transforms that wait":        {stage{cores: 4, workers: 3, transform: always(3 * ms), body: 5 * ms}, bottleneck.TransformWaits, workers},
		"uneven transforms that wait": {stage{cores: 4, workers: 2, transform: uneven, body: 20 * ms}, bottleneck.TransformWaits, workers},
		"long steps, and transforms":  {stage{cores: 4, workers: 1, transform: always(3 * ms), body: 50 * ms}, bottleneck.TransformWaits, workers},
		"reads that wait":             {stage{cores: 4, workers: 3, read: each(4 * ms), body: 5 * ms}, bottleneck.ReadsWait, workers},
		"reads of 15 ms a call": {stage{cores: 4, workers: 1, body: 5 * ms, read: func([]int) time.Duration { return 15 * ms }},
			bottleneck.ReadsWait, workers},
		"reads of 60 ms a call": {stage{cores: 4, workers: 2, body: 20 * ms, read: func([]int) time.Duration { return 60 * ms }},
			bottleneck.ReadsWait, workers},
		"a slow order":         {stage{cores: 1, workers: 1, order: slowly(ms), body: 10 * ms}, bottleneck.OrderBound, instant},
		"transforms that work": {stage{cores: 3, workers: 2, transform: always(2 * ms), body: 10 * ms}, bottleneck.TransformWaits, workers},
		"a straggler": {stage{cores: 4, workers: 3, body: 5 * ms, transform: func(r int) time.Duration {
			if r == 1234 {
				return 3 * time.Second
			}
			return ms / 100
		}}, bottleneck.Straggler, instant},
		"a slow consumer": {stage{cores: 4, workers: 3, read: each(10 * time.Microsecond), body: 10 * ms}, bottleneck.TrainBound, instant},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				got := c.stage.run(t).Diagnose()
				before, begin := time.Since(begin), time.Now()
				c.follow(c.stage, got.Text).run(t)
				gain := float64(before) / float64(time.Since(begin))
				t.Logf("%.2f times as fast: %v", gain, got)
				if got.Bottleneck != c.want || gain < 0.85*got.Gain || gain > 1.15*got.Gain {
					t.Errorf("%.2f times as fast, and %.2f was foretold: %+v, want %v", gain, got.Gain, got, c.want)
				}
			})
		})
	}
}

// slowly is a Sampler of consecutive records that take a while to choose.
type slowly time.Duration

func (o slowly) Epoch(n int, _ uint64, _ int) sampler.Sequence { return slowSequence{n, o} }

type slowSequence struct {
	n    int
	each slowly
}

func (s slowSequence) Len() int { return s.n }

func (s slowSequence) Fill(pos int, dst []int) {
	time.Sleep(time.Duration(len(dst)) * time.Duration(s.each))
	for i := range dst {
		dst[i] = pos + i
	}
}

// handing is a Source that is slow to be held: as no worker is at work on records meanwhile, it
// takes the time of handing batches over.
type handing struct{ *memory }

func (h handing) Retain() error {
	time.Sleep(2500)
	return h.memory.Retain()
}

// TestDiagnoseTinyBatches hands over batches of one small record.
func TestDiagnoseTinyBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld := openWords(t, handing{newMemorySource(2000, 1)}, loader.Options{BatchSize: 1, Workers: 1})
		if _, err := run(t.Context(), ld, func(loader.Batch) {}); err != nil {
			t.Fatal(err)
		}
		got := ld.Diagnose()
		if got.Bottleneck != bottleneck.TinyBatches || !strings.Contains(got.Text, "a batch of 1 records takes 2.5µs") || !strings.Contains(got.Text, "BatchSize 40") {
			t.Errorf("%+v, of %+v", got, ld.Stats())
		}
	})
}

// TestDiagnoseFromNumbers has statistics of loops, of a training that computes on the CPU as well.
func TestDiagnoseFromNumbers(t *testing.T) {
	ms := time.Millisecond
	calls := loader.Stats{Batches: 200, Records: 200 * 32, Workers: 3, MaxWorkers: 8, Cores: 4, HostCores: 4, Wait: 600 * ms, Body: 1400 * ms,
		Read: 3 * time.Second, SlowRead: 3 * time.Second, ReadBytes: 16e6, CPU: 1800 * ms, Storage: 5e6}
	computes := calls
	computes.Cores, computes.HostCores, computes.Workers, computes.MaxWorkers = 2, 2, 2, 2
	computes.CPU = 3800 * ms
	steps := loader.Stats{Batches: 100, Records: 6400, Workers: 2, MaxWorkers: 4, Cores: 4, Prefetch: 4, Wait: 960 * ms, Body: 15 * time.Second, Read: 900 * ms, ReadBytes: 1e9, Idle: 29 * time.Second}
	late := steps
	late.Wait = 5 * time.Second
	found := loader.Stats{Batches: 200, Records: 6400, Workers: 3, MaxWorkers: 4, Cores: 2, Prefetch: 2, Wait: 300 * ms, Body: 200 * ms, Read: 440 * ms, CPU: 700 * ms,
		ReadBytes: 96e7, Idle: 10 * ms}
	cores := loader.Stats{Batches: 800, Records: 102400, Workers: 3, MaxWorkers: 4, Cores: 2, Prefetch: 2, Wait: 87 * ms, Body: 59 * ms, Sampler: 3 * ms, Read: 182 * ms,
		CPU: 240 * ms, ReadBytes: 1266e6, Idle: 305 * ms}
	link := loader.Stats{Batches: 200, Records: 6400, Workers: 1, MaxWorkers: 4, Cores: 2, Prefetch: 2, Wait: 94 * ms, Body: 404 * ms, Read: 163 * ms, SlowRead: 155 * ms,
		CPU: 545 * ms, ReadBytes: 80e6, Idle: 326 * ms, Fetched: 82e6, FetchWait: 47 * ms, LinkRate: 171e6}
	alone := loader.Stats{Batches: 200, Records: 6400, MaxWorkers: 4, Cores: 2, Prefetch: 2, Wait: 300 * ms, Body: 400 * ms, Read: 290 * ms, CPU: 700 * ms, ReadBytes: 96e7}
	bus := loader.Stats{Batches: 200, Records: 6400, Workers: 1, MaxWorkers: 1, Cores: 2, Prefetch: 2, Wait: 900 * ms, Body: 600 * ms, Transform: 1400 * ms, CPU: 2200 * ms}
	full := bus
	full.CPU = 2900 * ms
	small := loader.Stats{Batches: 1000, Records: 255_500, Workers: 1, MaxWorkers: 1, Cores: 2, Wait: 20 * ms, Body: ms, Read: ms, ReadBytes: 1e6}
	for name, c := range map[string]struct {
		stats    loader.Stats
		want     bottleneck.Kind
		text     string
		min, max float64
	}{
		"a source of 15 ms a call, and a step that computes": {calls, bottleneck.ReadsWait, "Workers 4 would make the loop", 1.2, 1.43},
		"a source that computes":                             {computes, bottleneck.ReadsWait, "469µs a record: longer than memory would", 0, 0},
		"a step of 150 ms":                                   {steps, bottleneck.TrainBound, "waits 6 % of the time", 1.05, 1.07},
		"late batches":                                       {late, bottleneck.Bursts, "Prefetch 32 would let", 0, 0},
		"copies by 1 worker, until the search tried 3":       {found, bottleneck.CopyBound, "3 workers are busy for 98 %", 0, 0},
		"copies by 3 workers on 2 cores":                     {cores, bottleneck.CopyBound, "3 workers are busy for ", 0, 0},
		"a link in full use":                                 {link, bottleneck.RemoteBound, "at 96 % of the link", 0, 0},
		"copies by the loop itself":                          {alone, bottleneck.CopyBound, "makes its batches itself, is busy for 41 %", 0, 0},
		"1 worker, and training computes":                    {bus, bottleneck.TooFewWorkers, "only 1.5 of 2 cores; Workers 0 finds", 0, 0},
		"1 worker, and training takes the other core":        {full, bottleneck.TransformBound, "", 0, 0},
		"a last batch of an epoch":                           {small, bottleneck.TinyBatches, "a batch of 256 records", 0, 0},
	} {
		if got := c.stats.Diagnose(); got.Bottleneck != c.want || !strings.Contains(got.Text, c.text) || got.Gain < c.min || got.Gain > c.max {
			t.Errorf("%s: %+v, want %v with %q", name, got, c.want, c.text)
		}
	}
}

// TestDiagnosePacked reads records that are not stored as they are: by computing, and from storage.
func TestDiagnosePacked(t *testing.T) {
	reads := []loader.FieldReads{{Field: "y", How: "mapped"}, {Field: "x", How: "inflated", Why: "layout chunked with deflate(4) cannot be mapped"}}
	st := loader.Stats{Batches: 100, Records: 1000, Workers: 1, Cores: 4, Wait: 9 * time.Second, Body: time.Second, Read: 9 * time.Second, SlowRead: 9 * time.Second, ReadBytes: 9e8, CPU: 9 * time.Second, Reads: reads}
	got := st.Diagnose()
	if got.Bottleneck != bottleneck.DecodeBound || got.Gain != 0 || !strings.Contains(got.Text, `100 % of that with unpacking "x" (layout chunked with deflate(4) cannot be mapped) to 90 MB/s`) {
		t.Errorf("%+v", got)
	}
	st.CPU, st.Storage = time.Second, 3e8
	if got := st.Diagnose(); got.Bottleneck != bottleneck.ColdStorage || !strings.Contains(got.Text, "100 % of that with waiting for storage, which gives 30 MB/s") {
		t.Errorf("from storage: %+v", got)
	}
	st.Reads, st.CPU = reads[:1], 9*time.Second
	if got := st.Diagnose(); got.Bottleneck != bottleneck.ColdStorage {
		t.Errorf("as it is: %+v", got)
	}
}

// TestDiagnoseOthers has other programs take cores: some, but there are free ones; and some of those
// that this process would have.
func TestDiagnoseOthers(t *testing.T) {
	st := loader.Stats{Batches: 100, Records: 1000, Workers: 2, MaxWorkers: 4, Cores: 4, HostCores: 4, Wait: 9 * time.Second, Body: time.Second, Transform: 18 * time.Second, CPU: 20 * time.Second}
	for others, want := range map[time.Duration]bottleneck.Kind{0: bottleneck.TransformBound, 10 * time.Second: bottleneck.TransformBound, 19 * time.Second: bottleneck.OtherPrograms} {
		st.Others = others
		if got := st.Diagnose(); got.Bottleneck != want {
			t.Errorf("others run for %v: %+v", others, got)
		}
	}
	st.Others, st.CPU, st.Cores = 19*time.Second, 20*time.Second, 2 // they may have the other two
	if got := st.Diagnose(); got.Bottleneck != bottleneck.TransformBound {
		t.Errorf("on cores that are theirs: %+v", got)
	}
}

func TestDiagnoseTooEarly(t *testing.T) {
	ld := open(t, newMemorySource(30, 4), loader.Options{BatchSize: 10})
	visit(t, ld, 0)
	if got := ld.Diagnose(); got.Bottleneck != bottleneck.TooEarly || got.Gain != 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := stage{cores: 2, workers: 1, read: each(time.Millisecond), transform: always(2 * time.Millisecond), body: 10 * time.Millisecond}.run(t)
		want := map[string][2]time.Duration{
			"Body":      {st.Body, time.Second},
			"Read":      {st.Read, 2 * time.Second},
			"SlowRead":  {st.SlowRead, 2 * time.Second},
			"Transform": {st.Transform, 4 * time.Second},
			"Wait":      {st.Wait, 5*time.Second + 10*time.Millisecond},
			"Starts":    {st.Starts, 60 * time.Millisecond},
			"first":     {st.FirstBatch, 60 * time.Millisecond},
			"slowest":   {st.Slowest.Took, 3 * time.Millisecond},
			"late":      {st.LateBatch.Wait, 50 * time.Millisecond},
			"max":       {st.Waits.Max, 60 * time.Millisecond},
		}
		for what, w := range want {
			if w[0] != w[1] {
				t.Errorf("%s is %v, not %v", what, w[0], w[1])
			}
		}
		if st.ReadBytes != 2000*4008 || st.Slowest.Field != "x" || st.Ready != 0 {
			t.Errorf("%+v", st)
		}
		for _, q := range []time.Duration{st.Waits.P50, st.Waits.P95, st.Waits.P99} {
			if q < 50*time.Millisecond || q > 60*time.Millisecond {
				t.Errorf("quantiles %+v", st.Waits)
			}
		}
	})
}

// Records that take little are timed that many together that the clock is read seldom; what the
// reads and the transforms took in all is as exact.
func TestSmallRecordsAreTimedTogether(t *testing.T) {
	for _, c := range []struct {
		read, transform time.Duration
		among           int
	}{{10 * time.Microsecond, 10 * time.Microsecond, 1}, {500, 1500, 8}, {100, 900, 16}, {100, 100, 20}} {
		synctest.Test(t, func(t *testing.T) {
			st := stage{cores: 2, workers: 1, read: each(c.read), transform: always(c.transform), body: time.Millisecond}.run(t)
			if s := st.Slowest; s.Among != c.among || s.Took != time.Duration(c.among)*(c.read+c.transform) {
				t.Errorf("%v a record: %d were timed together, and took %v; want %d", c.read+c.transform, s.Among, s.Took, c.among)
			}
			if st.Read != 2000*c.read || st.Transform != 2000*c.transform {
				t.Errorf("%v to read and %v to transform: Read is %v, Transform %v", c.read, c.transform, st.Read, st.Transform)
			}
		})
	}
}

// saying is a Source that says how it reads.
type telling struct{ *memory }

func (telling) Location(string, int) string { return "" }

func (telling) DescribeReads(field string) (how, why string, resident float64) {
	return "mapped", field + " is warm", 0.5
}

func TestStatsOfTheSource(t *testing.T) {
	ld, err := loader.New(telling{newMemorySource(10, 4)}, loader.Options{BatchSize: 10})
	require.NoError(t, err)
	defer ld.Close()
	want := []loader.FieldReads{{"x", "mapped", "x is warm", 0.5}, {"y", "mapped", "y is warm", 0.5}}
	if got := ld.Stats().Reads; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
