package loader

import (
	"fmt"
	"sync"

	"github.com/penstock/penstock/loader/sampler"
)

// chunkOrder says what the order of a Loader costs in chunks that are decoded.
type chunkOrder struct {
	once    sync.Once
	order   string // in a sentence
	cheaper string // which order would cost less; "" if none would
	before  int64  // bytes that the Source had decoded before
}

// ofChunks returns the order of a [ChunkShuffle], alone or of a Subset, or nil.
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

// overBatches is how many successive batches are measured together.
const overBatches = 16

// look finds out what the order of a Loader costs. Its Source has n records, and it reads these fields.
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
