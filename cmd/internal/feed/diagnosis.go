package feed

import (
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/bottleneck"
)

// diagnosis says what limits a client's loop, in the names of Python's options. If the loop looks
// bound by training, it may still be bound by taking tiny batches, which is work of the client; so
// the times are judged a second time as if all of it were waiting.
func diagnosis(s loader.Stats, workers int) string {
	names := pythonNames(workers)
	d := s.DiagnoseFor(names)
	if d.Bottleneck == bottleneck.TrainBound { // with tiny batches it is the client that works to take them
		s.Wait, s.Body = s.Wait+s.Body, 0
		if handed := s.DiagnoseFor(names); handed.Bottleneck == bottleneck.TinyBatches {
			d = handed
		}
	}
	return d.Text
}

// pythonNames words advice in the parameters of penstock.DataLoader. workers is the user's
// num_workers.
func pythonNames(workers int) bottleneck.Names {
	return bottleneck.Names{
		Workers:   func(n int) string { return fmt.Sprintf("num_workers=%d", n) },
		Find:      "num_workers=None",
		BatchSize: func(records int) string { return fmt.Sprintf("batch_size=%d", records) },
		Prefetch:  func(batches int) string { return fmt.Sprintf("prefetch_factor=%d", prefetchFactor(batches, workers)) },
		Block:     "samplers.Block",
		Sampler:   "the sampler",
		Source:    "the source",
		Transform: "a transform",
	}
}

// prefetchFactor returns the prefetch_factor that gives the client this many slots, or as many as
// there may be: Python asks for num_workers * prefetch_factor + 2 slots.
func prefetchFactor(slots, workers int) int {
	return max(1, (min(slots, maxSlots)-2)/max(1, workers))
}
