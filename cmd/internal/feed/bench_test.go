package feed

import (
	"fmt"
	"os"
	"testing"
)

// BenchmarkFeed measures the rate at which a client that only gives batches back receives the
// dataset of images that PENSTOCK_BENCH_FEED names.
func BenchmarkFeed(b *testing.B) {
	path := os.Getenv("PENSTOCK_BENCH_FEED")
	if path == "" {
		b.Skip("PENSTOCK_BENCH_FEED names no dataset")
	}
	const size = 256
	c := dial(b.Context(), b, path)
	c.greet(fmt.Sprintf(`{"batch_size":%d,"sampler":{"kind":"shuffle"},"drop_last":true,"transforms":{"":[{"op":"RandomHorizontalFlip"},{"op":"ToTensor"},{"op":"Normalize"}]}}`, size))
	c.start()
	for b.Loop() {
		got := c.receive().Batch
		c.send(fmt.Sprintf(`{"release":[%d]}`, got.Slot))
	}
	b.ReportMetric(size*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
