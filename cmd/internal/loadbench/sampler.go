package loadbench

import (
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// capped is a Sampler whose epochs end after at most that many records, as the guide's do.
type capped struct {
	sampler.Sampler
	most int
}

// Epoch returns the first records of the Sampler's epoch.
func (c capped) Epoch(n int, seed uint64, epoch int) sampler.Sequence {
	return cappedSequence{c.Sampler.Epoch(n, seed, epoch), c.most}
}

// ID identifies the order and its end.
func (c capped) ID() string { return fmt.Sprintf("%s[:%d]", samplerName(c.Sampler), c.most) }

// cappedSequence is the start of a Sequence.
type cappedSequence struct {
	sampler.Sequence
	most int
}

func (s cappedSequence) Len() int { return min(s.most, s.Sequence.Len()) }

// chunkShuffle is the name in tables of the order that decodes each chunk once.
const chunkShuffle = "chunk shuffle"

// byChunks returns the order by the chunks of windows, or nil if the source has no chunks.
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

// samplerName returns the name of a sampler in tables.
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
