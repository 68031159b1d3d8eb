package loader

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/loader/sampler"
)

// DefaultChunkCache is how many bytes of decoded chunks a [ChunkSource] keeps without an order of chunks: 256 MiB.
const DefaultChunkCache = 256 << 20

// NewChunkShuffle returns the Sampler that decodes each chunk of a [ChunkSource] about once an epoch, and has src
// keep chunks for it. fields names the fields that a Loader will read; no names mean all fields.
func NewChunkShuffle(src Source, o sampler.ChunkOptions, fields ...string) (*sampler.ChunkShuffle, error) {
	return NewChunkShuffleOf(src, nil, o, fields...)
}

// NewChunkShuffleOf is [NewChunkShuffle] for the records with some numbers, each of which is its place in the list:
// for the Inner of a sampler.Subset.
func NewChunkShuffleOf(src Source, records []int, o sampler.ChunkOptions, fields ...string) (*sampler.ChunkShuffle,
	error) {
	chunked, ok := src.(ChunkSource)
	if !ok {
		return nil, errors.New("loader: chunk shuffle: these records are not in chunks; windows over HDF5 and Zarr are. " +
			"For others, use Shuffle")
	}
	chunks, err := chunked.Chunks(fields, records)
	if err != nil {
		return nil, fmt.Errorf("loader: chunk shuffle: %w", err)
	}
	order, err := sampler.NewChunkShuffle(chunks, o)
	if err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	chunked.KeepChunks(order)
	return order, nil
}
