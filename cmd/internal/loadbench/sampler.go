package loadbench

import (
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// capped is a Sampler that ends each epoch after at most that many records.
type capped struct {
	sampler.Sampler
	most int
}

// Epoch returns the start of the epoch of the Sampler.
func (c capped) Epoch(n int, seed uint64, epoch int) sampler.Sequence {
	return cappedSequence{c.Sampler.Epoch(n, seed, epoch), c.most}
}

// ID reports the order, and where it ends.
func (c capped) ID() string { return fmt.Sprintf("%s[:%d]", samplerName(c.Sampler), c.most) }

type cappedSequence struct {
	sampler.Sequence
	most int
}

func (s cappedSequence) Len() int { return min(s.most, s.Sequence.Len()) }

// chunkShuffle is the name of the order that decodes chunks once.
const chunkShuffle = "chunk shuffle"

// byChunks returns the order by the chunks of windows, nil if the source has none.
func (s *subject) byChunks(batch int) *sampler.ChunkShuffle {
	src, ok := s.stored.(loader.ChunkSource)
	if !ok {
		return nil
	}
	chunks, err := src.Chunks(nil, nil)
	if err != nil {
		return nil
	}
	order, err := sampler.NewChunkShuffle(chunks, sampler.ChunkOptions{Batch: batch})
	if err != nil {
		return nil
	}
	return order
}

// samplerName returns how tables name a sampler.
func samplerName(o sampler.Sampler) string {
	switch o := o.(type) {
	case sampler.Shuffle:
		return "shuffle"
	case *sampler.ChunkShuffle:
		return chunkShuffle
	case interface{ ID() string }:
		return o.ID()
	}
	return "sequential"
}
