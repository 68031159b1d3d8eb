package loader_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// cold is a Source on slow storage that notes what it was asked for, in order.
type cold struct {
	*memory
	hinted []int // records that Prefetch named
	warmed []int // records that Warm named
	broken error // what Warm returns
}

func (c *cold) Prefetch(field string, a, b int) error {
	for ; a < b && field == "x"; a++ {
		c.hinted = append(c.hinted, a)
	}
	return errors.New("a hint may fail")
}

func (c *cold) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	time.Sleep(time.Millisecond) // slower than memory, by the rule of Loader
	return c.memory.Gather(ctx, field, indices, dst)
}

func (c *cold) IsWarm(string, int, int) bool { return false }

func (c *cold) Warm(field string, a, b int) error {
	for ; a < b && field == "x"; a++ {
		c.warmed = append(c.warmed, a)
	}
	time.Sleep(time.Millisecond)
	return c.broken
}

func openCold(t *testing.T, c *cold, o loader.Options) *loader.Loader {
	t.Helper()
	ld, err := loader.New(c, o)
	require.NoError(t, err)
	t.Cleanup(func() { ld.Close() })
	return ld
}

// A hint names the front of a batch: at most 2 MiB, or one record, so that storage is not asked
// for more than keeps it busy.
func TestHintsAreShort(t *testing.T) {
	for _, c := range []struct {
		width int
		want  []int
	}{{600 << 10, []int{0, 1, 2, 4, 5, 6}}, {3 << 20, []int{0, 4}}, {4, upTo(8)}} {
		for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Block{Size: 4}} {
			src := &cold{memory: newMemorySource(8, c.width)}
			ld := openCold(t, src, loader.Options{BatchSize: 4, Workers: 1, Sampler: order, Allocator: &heap{}})
			records(t, ld)
			slices.Sort(src.hinted)
			if got := slices.Compact(src.hinted); !slices.Equal(got, c.want) {
				t.Errorf("%T, %d bytes a record: records %v are hinted, want %v", order, c.width, got, c.want)
			}
		}
	}
}

// Records that Gather reads are not announced. Records of a run, which may become views, and records that are
// transformed one by one, are.
func TestGatheredRecordsAreNotAnnounced(t *testing.T) {
	for _, c := range []struct {
		change func(*loader.Options)
		want   int
	}{
		{func(*loader.Options) {}, 0},
		{func(o *loader.Options) { o.Sampler = sampler.Sequential{} }, 40},
		{func(o *loader.Options) { o.Transforms = map[string]loader.Transform{"x": negate{}} }, 20}, // the first batches
		{func(o *loader.Options) {
			o.Transforms, o.Timeout = map[string]loader.Transform{"x": negate{}}, time.Hour
		}, 40},
	} {
		for _, width := range []int{4, 64 << 10} {
			src := &cold{memory: newMemorySource(40, width)}
			o := loader.Options{BatchSize: 10, Workers: 1, Sampler: sampler.Shuffle{}, Seed: 3}
			c.change(&o)
			records(t, openCold(t, src, o))
			slices.Sort(src.hinted)
			if got := len(slices.Compact(src.hinted)); got != c.want {
				t.Errorf("%+v, %d bytes: %d records were announced, want %d", o, width, got, c.want)
			}
		}
	}
}

func TestViewsAreWarmed(t *testing.T) {
	c := &cold{memory: newMemorySource(100, 4)}
	ld := openCold(t, c, loader.Options{BatchSize: 30, Workers: 1})
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		checkBatch(t, b)
	}
	if len(c.warmed) != 100 || !slices.IsSorted(c.warmed) {
		t.Errorf("warmed records %v; want each of 100 once", c.warmed)
	}
	c.broken = errBad
	n, err := run(t.Context(), ld, ignore)
	if n != 0 || !errors.Is(err, errBad) {
		t.Errorf("%d batches, then %v", n, err)
	}
}

// short is a Source whose views lack a record.
type short struct{ *memory }

func (s short) Slice(field string, a, b int) (tensor.View, error) {
	return s.memory.Slice(field, a, b-1)
}

func TestShortViewIsAnError(t *testing.T) {
	ld, err := loader.New(short{newMemorySource(100, 4)}, loader.Options{BatchSize: 10})
	require.NoError(t, err)
	defer ld.Close()
	n, err := run(t.Context(), ld, ignore)
	if want := `loader: batch 0: field "x": the Source's Slice returned 9 records, not 10`; n != 0 || err == nil || err.Error() != want {
		t.Errorf("%d batches, then %v; want %s", n, err, want)
	}
}

// aware is a Source over a network that answers reads once it knows of half of what comes.
type aware struct {
	*memory
	mu    sync.Mutex
	named []int
}

func (a *aware) LookaheadBytes() int64 { return 1 << 20 }

func (a *aware) Fetch(_ context.Context, field string, indices []int) error {
	if field == "x" {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.named = append(a.named, indices...)
	}
	return nil
}

func (a *aware) NetworkStats() (int64, time.Duration, float64) { return 0, 0, 0 }

func (a *aware) wait(ctx context.Context, _ string, _ []int) error {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		a.mu.Lock()
		n := len(a.named)
		a.mu.Unlock()
		if n >= a.n/2 {
			return nil
		}
		if time.Sleep(time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.New("nothing of what comes was named in a minute")
}

// Records are named to a Source over a network before they are read, in the order of the loop.
func TestRecordsAreNamedBeforehand(t *testing.T) {
	a := &aware{memory: newMemorySource(400, 4)}
	a.before = a.wait
	ld := open(t, a, loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}, Seed: 5, Workers: 1})
	for epoch := range 2 {
		a.mu.Lock()
		a.named = nil
		a.mu.Unlock()
		got := visit(t, ld, epoch)
		a.mu.Lock()
		named := a.named
		a.mu.Unlock()
		at := slices.Index(got, named[0])
		if at < 0 || at > 200 || len(named) > len(got)-at || !slices.Equal(named, got[at:at+len(named)]) {
			t.Errorf("epoch %d: named %v of %v", epoch, named, got)
		}
	}
}
