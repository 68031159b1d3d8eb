package loader_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

func TestTuning(t *testing.T) {
	var one chan struct{} // a resource that serves one reader at a time
	for name, c := range map[string]struct {
		read func(indices []int)
		body time.Duration
		want []int // workers in the end
	}{
		"up to train-bound": {func(i []int) { time.Sleep(time.Duration(len(i)) * time.Millisecond) }, 5 * time.Millisecond, []int{2, 3}},
		"up to the limit":   {func(i []int) { time.Sleep(time.Duration(len(i)) * time.Millisecond) }, 0, []int{6}},
		"no gain":           {nil, 0, []int{1}},
		"no need":           {func([]int) {}, time.Millisecond, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemorySource(10_000, 4)
				one = make(chan struct{}, 1)
				m.before = func(_ context.Context, field string, indices []int) error {
					switch {
					case field != "x":
					case c.read != nil:
						c.read(indices)
					default:
						one <- struct{}{}
						time.Sleep(time.Duration(len(indices)) * time.Millisecond)
						<-one
					}
					return nil
				}
				o := loader.Options{BatchSize: 10, Workers: 1, MaxWorkers: 6, Sampler: sampler.Shuffle{}, Seed: 4}
				ld := open(t, m, o)
				var got []int
				for b, err := range ld.Epoch(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					checkBatch(t, b)
					got = append(got, b.Indices()...)
					time.Sleep(c.body)
				}
				if st := ld.Stats(); !slices.Contains(c.want, st.Workers) {
					t.Errorf("%d workers; want %v: %+v", st.Workers, c.want, st)
				}
				if !slices.Equal(got, fillAll(t, o.Sampler, m.n, 4, 0)) {
					t.Error("tuning changed the order")
				}
			})
		})
	}
}

// Prefetch grows where training waits although workers are idle in between, and there alone; what
// batches hold and their order stay.
func TestTuningPrefetch(t *testing.T) {
	stragglers := func(i []int) {
		if i[0]%23 == 0 {
			time.Sleep(30 * time.Millisecond)
		}
		time.Sleep(time.Millisecond)
	}
	even := func([]int) { time.Sleep(10 * time.Millisecond) }
	for name, c := range map[string]struct {
		read        func(indices []int)
		body        time.Duration
		change      func(*loader.Options)
		least, most int // Prefetch in the end
	}{
		"stragglers":        {stragglers, 2 * time.Millisecond, nil, 8, 32},
		"not asked for":     {stragglers, 2 * time.Millisecond, func(o *loader.Options) { o.MaxPrefetch = 0 }, 2, 2},
		"up to the limit":   {stragglers, 2 * time.Millisecond, func(o *loader.Options) { o.MaxPrefetch = 7 }, 7, 7},
		"within the budget": {stragglers, 2 * time.Millisecond, func(o *loader.Options) { o.Budget = 8 * 2 * 4096 }, 5, 5},
		"no memory":         {stragglers, 2 * time.Millisecond, func(o *loader.Options) { o.Allocator = &scarce{left: 3} }, 4, 4},
		"too few workers":   {even, time.Millisecond, nil, 2, 2},
		"train-bound":       {even, 50 * time.Millisecond, nil, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemorySource(5_000, 4)
				m.before = func(_ context.Context, field string, indices []int) error {
					if field == "x" {
						c.read(indices)
					}
					return nil
				}
				o := loader.Options{BatchSize: 10, Workers: 2, Prefetch: 2, MaxPrefetch: 32, Sampler: sampler.Shuffle{}, Seed: 4}
				if c.change != nil {
					c.change(&o)
				}
				ld := open(t, m, o)
				var got []int
				for b, err := range ld.Epoch(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					checkBatch(t, b)
					got = append(got, b.Indices()...)
					time.Sleep(c.body)
				}
				st := ld.Stats()
				if st.Prefetch < c.least || st.Prefetch > c.most || st.RingBytes != (st.Prefetch+3)*2*4096 {
					t.Errorf("Prefetch is %d, want %d to %d: %+v", st.Prefetch, c.least, c.most, st)
				}
				if !slices.Equal(got, fillAll(t, o.Sampler, m.n, 4, 0)) {
					t.Error("tuning changed the order")
				}
			})
		})
	}
}

// Loops are the shorter for it.
func TestTuningPrefetchGains(t *testing.T) {
	took := func(most int) (loop time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemorySource(5_000, 4)
			m.before = func(_ context.Context, field string, indices []int) error {
				if field == "x" && indices[0]/10%20 == 0 {
					time.Sleep(40 * time.Millisecond)
				}
				return nil
			}
			ld := open(t, m, loader.Options{BatchSize: 10, Workers: 2, MaxPrefetch: most, Allocator: &heap{}})
			for _, batches := range ld.Epochs(t.Context(), 2) {
				for _, err := range batches {
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Millisecond)
				}
			}
			st := ld.Stats()
			loop = st.Wait + st.Body
		})
		return loop
	}
	if fixed, tuned := took(0), took(64); tuned > fixed*3/4 {
		t.Errorf("%v with a fixed Prefetch, %v with one that may grow", fixed, tuned)
	}
}

// scarce is an Allocator that has room for that many allocations.
type scarce struct{ left int }

func (s *scarce) Alloc(n int) ([]byte, error) {
	if s.left--; s.left < 0 {
		return nil, errors.New("no memory")
	}
	return make([]byte, n), nil
}

func (s *scarce) Free([]byte) error { return nil }

func TestMaxWorkersWithinBudget(t *testing.T) {
	const page = 4096
	ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 10, Workers: 2, MaxWorkers: 50, Budget: 2 * page * 10, Sampler: sampler.Shuffle{}})
	visit(t, ld, 0)
	if st := ld.Stats(); st.RingBytes > 2*page*10 {
		t.Errorf("%+v", st)
	}
	_, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 1, Workers: loader.Synchronous, MaxWorkers: 3, MaxPrefetch: 3, Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "MaxPrefetch needs Workers") || !strings.Contains(err.Error(), "MaxWorkers needs Workers") || !strings.Contains(err.Error(), "a Timeout needs Workers") {
		t.Errorf("error %v", err)
	}
}
