package loader_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// frozen is a Source on slow storage of records that are as long as asked for, all of them the same memory.
type frozen struct {
	*memory
	record []byte
	most   atomic.Int64 // bytes that one Gather was for
}

func newFrozen(n, width int) *frozen {
	m := newMemorySource(n, 1)
	m.specs[0].Shape = tensor.Shape{width}
	return &frozen{memory: m, record: make([]byte, width)}
}

func (f *frozen) IsWarm(string, int, int) bool { return false }

func (f *frozen) Warm(_ string, a, b int) error {
	time.Sleep(time.Duration(b-a) * f.slowness())
	return nil
}

// slowness is the time of a record: longer than from memory.
func (f *frozen) slowness() time.Duration {
	return time.Duration(len(f.record)/4) + 20*time.Microsecond
}

func (f *frozen) Slice(field string, a, b int) (tensor.View, error) {
	if field != "x" || b != a+1 {
		return f.memory.Slice(field, a, b)
	}
	return tensor.Of(f.specs[0], 1, f.record), nil
}

func (f *frozen) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	if field != "x" {
		return f.memory.Gather(ctx, field, indices, dst)
	}
	for most := f.most.Load(); int64(len(dst)) > most && !f.most.CompareAndSwap(most, int64(len(dst))); most = f.most.Load() {
	}
	time.Sleep(time.Duration(len(indices)) * f.slowness())
	return nil
}

// first is a Transform to the first byte of a record.
type first struct{}

func (first) Output(in tensor.Spec) (tensor.Spec, error) {
	return tensor.Spec{Name: in.Name, DType: tensor.Uint8}, nil
}

func (first) Worker(tensor.Spec, int) (loader.RecordFunc, error) {
	return func(dst, src []byte, _ loader.Record) error { return copyFirst(dst, src) }, nil
}

func copyFirst(dst, src []byte) error {
	dst[0] = src[0]
	return nil
}

// Workers that gather cold records before they transform them have memory for some at a time, not for a batch: 64 MiB in
// all, less where Budget is less, and none that they do not use.
func TestStagedMemory(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		width, workers, budget int
		least, most            int // bytes of one Gather
		total                  int
	}{
		"long records, many workers":  {3 * mib, 15, 0, 3 * mib, 4 * mib, 64 * mib},
		"long records, one worker":    {3 * mib, 1, 0, 24 * mib, 24 * mib, 32 * mib},
		"within the Budget":           {3 * mib, 3, 40 * mib, 9 * mib, 10 * mib, 40 * mib},
		"no room within the Budget":   {3 * mib, 15, 20 * mib, 0, 0, 0},
		"records of 40 MiB":           {40 * mib, 2, 0, 0, 0, 0},
		"short records, many workers": {64 << 10, 15, 0, 512 << 10, 512 << 10, 8 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			src := newFrozen(8*3*c.workers, c.width)
			ld, err := loader.New(src, loader.Options{
				BatchSize: 8, Workers: c.workers, Sampler: sampler.Shuffle{}, Budget: c.budget, Transforms: map[string]loader.Transform{"x": first{}},
			})
			require.NoError(t, err)
			defer ld.Close()
			if got := loader.Scratch(ld); got != 0 {
				t.Errorf("%d bytes before the first batch", got)
			}
			for range 2 {
				if n, err := run(t.Context(), ld, ignore); n != 3*c.workers || err != nil {
					t.Fatalf("%d batches, %v", n, err)
				}
			}
			st := ld.Stats()
			if st.Workers != c.workers {
				t.Errorf("%d workers", st.Workers)
			}
			if got := int(src.most.Load()); got < c.least || got > c.most {
				t.Errorf("%d bytes were gathered at once, want %d to %d", got, c.least, c.most)
			}
			if got := loader.Scratch(ld); got > c.total || c.budget > 0 && got+st.RingBytes > c.budget {
				t.Errorf("%d bytes of stored records are held, and %d of batches, want at most %d", got, st.RingBytes, c.total)
			}
		})
	}
}

// While batches come from storage, a worker may add a second one as the loop asks for its next batch: a race, where the
// two do not agree on a lock.
func TestWorkerThatIsAddedForStorage(t *testing.T) {
	var bytes atomic.Int64
	defer loader.SetStorageRead(func() int64 { return bytes.Add(1 << 30) })()
	withProcs(2, func() {
		for range 20 {
			src := newFrozen(40, 64<<10)
			ld, err := loader.New(src, loader.Options{BatchSize: 1, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": first{}}})
			require.NoError(t, err)
			var kept loader.Batch
			n, err := run(t.Context(), ld, func(b loader.Batch) {
				kept.Release()
				if kept = b; b.Keep() != nil { // so that the loop takes no lock at the end of the body
					t.Error("a batch cannot be kept")
				}
				if b.Step() < 3 {
					time.Sleep(2 * time.Millisecond) // the worker makes the next ones meanwhile
				}
			})
			kept.Release()
			if err := errors.Join(err, ld.Close()); n != 40 || err != nil {
				t.Fatalf("%d batches, %v", n, err)
			}
		}
	})
}
