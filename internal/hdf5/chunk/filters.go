package chunk

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// New returns the codec of a filter for chunks of that many bytes. The error is meta.ErrUnsupported for a filter that
// cannot be decoded here, and meta.ErrCorrupt for parameters that no program writes.
func New(f meta.Filter, chunkBytes int) (Codec, error) {
	switch f.ID {
	case meta.FilterSzip:
		return newSzip(f.Params)
	case meta.FilterNbit:
		return newNbit(f.Params, chunkBytes)
	case meta.FilterBzip2:
		return decoder{unbzip2, mostBzip2}, nil
	case meta.FilterLZ4:
		return decoder{unframeLZ4, mostLZ4}, nil
	case meta.FilterZstd:
		return decoder{unzstd, mostZstd}, nil
	case meta.FilterBlosc:
		return decoder{unblosc, mostZstd}, nil
	case meta.FilterBlosc2:
		return decoder{unblosc2, mostZstd}, nil
	case meta.FilterBitshuffle:
		return newBitshuffle(f.Params)
	}
	return nil, fmt.Errorf("filter %v cannot be decoded here: %w", f, meta.ErrUnsupported)
}
