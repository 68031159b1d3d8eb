package feed

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

var epochs = flag.Int("epochs", 60, "epochs of the test of memory, which begins to compare after a sixth of them")

// footprint is the memory that this process holds.
type footprint struct {
	goroutines, files int
	heap, shared      int64
	anonymous         string // memory, as the kernel counts it
}

func measure(t *testing.T, c *client) footprint {
	t.Helper()
	c.send(`{"stats":true}`)
	shared := c.receive().Stats.Shared
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, anonymous, _ := strings.Cut(string(status), "RssAnon:")
	anonymous, _, _ = strings.Cut(anonymous, "\n")
	return footprint{runtime.NumGoroutine(), len(files), int64(m.HeapAlloc), shared, strings.TrimSpace(anonymous)}
}

// TestMemoryIsFlat serves many epochs of fields that are built again in each one, and compares
// the memory that is held. Feeder and client are one process here.
func TestMemoryIsFlat(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, false))
	w := c.greet(`{"batch_size":8,"sampler":{"kind":"shuffle"},"drop_last":true,"transforms":{"":[{"op":"RandomHorizontalFlip"},{"op":"ToTensor"},{"op":"Normalize"}]},"batch_transforms":[{"op":"MixUp","num_classes":60}]}`)
	c.start()
	give := func(slot int) { c.send(fmt.Sprintf(`{"release":[%d]}`, slot)) }
	run := func(epochs int) footprint {
		for range epochs * w.Batches {
			give(c.receive().Batch.Slot)
		}
		var held []int // all slots, so that no batch comes before the statistics
		for range w.Slots {
			held = append(held, c.receive().Batch.Slot)
		}
		defer func() {
			for _, slot := range held {
				give(slot)
			}
		}()
		return measure(t, c)
	}
	before := run(*epochs / 6)
	after := run(*epochs - *epochs/6)
	t.Logf("after %d epochs %+v, after %d %+v", *epochs/6, before, *epochs, after)
	if after.goroutines > before.goroutines || after.files > before.files || after.shared > before.shared {
		t.Error("goroutines, files or shared memory grew")
	}
	if grown := after.heap - before.heap; grown > 64<<10 {
		t.Errorf("%d bytes of the heap are held that were not before", grown)
	}
}
