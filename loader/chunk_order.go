package loader

import (
	"fmt"
	"sync"

	"github.com/penstock/penstock/loader/sampler"
)

// chunkOrder describes how often the order of a Loader decodes each chunk. The description is
// computed once, when it is first asked for: New should not wait for it, because it draws from the
// order of an epoch.
type chunkOrder struct {
	once    sync.Once
	order   string // in a sentence
	cheaper string // which order would cost less; "" if none would
	before  int64  // bytes that the Source had decoded before
}

// ofChunks returns the [ChunkShuffle] that a Sampler is, or that it takes a Subset of, and nil for
// other Samplers.
func ofChunks(s sampler.Sampler) *sampler.ChunkShuffle {
	switch s := s.(type) {
	case *sampler.ChunkShuffle:
		return s
	case sampler.Subset:
		return ofChunks(s.Inner)
	}
	return nil
}

// shuffles reports whether a Sampler visits all records as Shuffle does.
func shuffles(s sampler.Sampler) bool {
	_, is := s.(sampler.Shuffle)
	return is
}

// overBatches is how many successive batches are measured together. A ChunkShuffle that is not
// random enough shows in neighboring batches, which draw from the same chunks.
const overBatches = 16

// look describes what an order of n records costs, in o.order and, if a ChunkShuffle would
// decode less, in o.cheaper. fields are the fields that the Loader reads.
func (o *chunkOrder) look(opts *Options, n int, src ChunkSource, fields []string) {
	global := opts.shares().Global()
	if order := ofChunks(opts.Sampler); order != nil {
		seed := opts.Seed
		if of, is := opts.Sampler.(sampler.Subset); is {
			n = of.Epoch(n, seed, 0).Len()
		}
		o.order = fmt.Sprintf("%v; of Shuffle's randomness, batches have %.2f, and %d together %.2f",
			order.Plan(), sampler.Randomness(order, n, global, 1, seed), overBatches,
			sampler.Randomness(order, n, global, overBatches, seed))
		return
	}
	if !shuffles(opts.Sampler) {
		return
	}
	chunks, err := src.Chunks(fields, nil)
	if err != nil { // it has none
		return
	}
	times := chunks.Shuffle(DefaultChunkCache)
	o.order = fmt.Sprintf("Shuffle decodes each chunk about %.0f times an epoch", times)
	order, err := sampler.NewChunkShuffle(chunks, sampler.ChunkOptions{Batch: global, Ranks: opts.shares().Ranks})
	if err == nil && order.Plan().Decodes < times/2 {
		o.cheaper = fmt.Sprintf("ChunkShuffle decodes it %.1f times", order.Plan().Decodes)
		o.order += "; " + o.cheaper
	}
}
