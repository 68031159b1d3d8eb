package loader_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/loader"
)

// tides is a loop over batches of ten records that are made in bursts at some times and evenly at
// others, while training takes two milliseconds for each.
type tides struct {
	batches int
	bursts  func(batch int) bool // whether it is a time of bursts
	change  func(*loader.Options)
}

// run returns Prefetch after each batch. Now and then a batch is kept for a while.
func (c tides) run(t *testing.T) (prefetch []int) {
	m := newMemorySource(10*c.batches, 4)
	m.before = func(_ context.Context, field string, indices []int) error {
		if batch := indices[0] / 10; field == "x" && batch%100 < 10 && c.bursts(batch) {
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}
	memory := &counted{held: make(map[*byte]int)}
	o := loader.Options{BatchSize: 10, Workers: 2, Prefetch: 2, MaxPrefetch: 64, Allocator: memory}
	if c.change != nil {
		c.change(&o)
	}
	ld, err := loader.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	var released []chan struct{}
	var order []int
	for b, err := range ld.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, b.Indices()...)
		time.Sleep(2 * time.Millisecond)
		if b.Step()%50 == 0 {
			released = append(released, keepFor(t, b, 80*time.Millisecond))
		}
		checkBatch(t, b)
		prefetch = append(prefetch, ld.Stats().Prefetch)
	}
	for _, done := range released {
		<-done
	}
	if slices.Sort(order); !slices.Equal(order, upTo(10*c.batches)) {
		t.Error("tuning changed what batches hold")
	}
	const slot = 2 * 4096
	most := slices.Max(prefetch[c.batches-500:]) // buffers end when they come free
	if st := ld.Stats(); st.RingBytes != memory.bytes() || st.RingBytes < (st.Prefetch+3)*slot || st.RingBytes > (most+3)*slot {
		t.Errorf("%d bytes of buffers with Prefetch %d; allocated are %d", st.RingBytes, st.Prefetch, memory.bytes())
	}
	if err := ld.Close(); err != nil || memory.bytes() != 0 {
		t.Errorf("%d bytes are still allocated; error %v", memory.bytes(), err)
	}
	return prefetch
}

// values returns a sequence without repetitions.
func values(prefetch []int) []int { return slices.Compact(slices.Clone(prefetch)) }

// keepFor keeps a batch, and releases it in another goroutine.
func keepFor(t *testing.T, b loader.Batch, d time.Duration) (done chan struct{}) {
	if err := b.Keep(); err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(d)
		checkBatch(t, b)
		b.Release()
	}()
	return done
}

// Buffers that were added while training waited are freed long after it stopped waiting.
func TestPrefetchIsGivenBack(t *testing.T) {
	for _, completed := range []bool{false, true} {
		t.Run(fmt.Sprint("unordered ", completed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				prefetch := tides{6000, func(batch int) bool { return batch < 2000 }, func(o *loader.Options) { o.Unordered = completed }}.run(t)
				t.Log(values(prefetch))
				if most, last := slices.Max(prefetch), prefetch[len(prefetch)-1]; most < 16 || last != 2 {
					t.Errorf("Prefetch rose to %d and is %d in the end", most, last)
				}
			})
		})
	}
}

// Buffers that absorb bursts are kept for as long as bursts come.
func TestPrefetchThatIsUsedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prefetch := tides{6000, func(int) bool { return true }, nil}.run(t)
		if !slices.IsSorted(prefetch) || prefetch[len(prefetch)-1] < 16 {
			t.Errorf("Prefetch was %v", values(prefetch))
		}
	})
}

// Whatever comes when, what was added again after it had been given back is kept. So Prefetch settles.
func TestPrefetchSettles(t *testing.T) {
	for name, bursts := range map[string]func(rng *rand.Rand) func(batch int) bool{
		"tides":  func(*rand.Rand) func(int) bool { return func(batch int) bool { return batch/1000%2 == 0 } },
		"random": func(rng *rand.Rand) func(int) bool { return randomTimes(rng, 200, 1500) },
		"short":  func(rng *rand.Rand) func(int) bool { return randomTimes(rng, 50, 400) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				prefetch := tides{12_000, bursts(rand.New(rand.NewPCG(1, 2))), nil}.run(t)
				t.Log(values(prefetch))
				floor, fell := 2, false
				for k := 1; k < len(prefetch); k++ {
					switch before, now := prefetch[k-1], prefetch[k]; {
					case now < floor:
						t.Fatalf("batch %d: Prefetch is %d, and was to be %d at least: %v", k, now, floor, values(prefetch[:k+1]))
					case now < before:
						fell = true
					case now > before && fell:
						floor, fell = now, false
					}
				}
				if slices.Max(prefetch) < 8 || slices.IsSorted(prefetch) {
					t.Errorf("nothing was tried: Prefetch was %v", values(prefetch))
				}
			})
		})
	}
}

// randomTimes returns times that each are bad or good for that many batches.
func randomTimes(rng *rand.Rand, least, most int) func(batch int) bool {
	var ends []int
	for at := 0; at < 20_000; {
		at += least + rng.IntN(most-least)
		ends = append(ends, at)
	}
	return func(batch int) bool {
		k, _ := slices.BinarySearch(ends, batch)
		return k%2 == 0
	}
}
