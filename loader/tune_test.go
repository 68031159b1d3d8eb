package loader_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
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
		"up to the limit":   {func(i []int) { time.Sleep(time.Duration(len(i)) * time.Millisecond) }, 0, []int{4}},
		"no gain":           {nil, 0, []int{0, 1}},
		"no need":           {func([]int) {}, time.Millisecond, []int{0, 1}},
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
				o := loader.Options{BatchSize: 10, World: loader.World{LocalSize: 1 << 20}, Sampler: sampler.Shuffle{}, Seed: 4}
				ld := open(t, m, o)
				var got []int
				for b, err := range ld.Epoch(t.Context(), 0) {
					require.NoError(t, err)
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

// Workers that are found keep to the Budget.
func TestWorkersWithinBudget(t *testing.T) {
	const page = 4096
	ld := open(t, newMemorySource(1000, 4), loader.Options{BatchSize: 10, Budget: 2 * page * 6, Sampler: sampler.Shuffle{}})
	visit(t, ld, 0)
	if st := ld.Stats(); st.RingBytes > 2*page*6 || st.MaxWorkers > 3 {
		t.Errorf("%+v", st)
	}
	_, err := loader.New(newMemorySource(10, 4), loader.Options{BatchSize: 1, Workers: loader.Synchronous, Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "a Timeout needs Workers") {
		t.Errorf("error %v", err)
	}
}
