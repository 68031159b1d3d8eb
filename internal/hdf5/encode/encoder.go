package encode

import (
	"fmt"

	"github.com/penstock/penstock/internal/codec/filter"
)

// Encoder makes chunks as a Recipe says. It is for one goroutine. The same records and Recipe give
// the same chunk, whatever the Encoder made before.
type Encoder struct {
	recipe   Recipe
	deflater *deflater
	padded   []byte // a chunk of fewer records than Recipe.Records, with zeros
	shuffled []byte // a chunk after shuffle
}

// NewEncoder returns an Encoder, which holds up to three chunks of memory and what the
// compressor needs (about 1 MB).
func NewEncoder(r Recipe) (*Encoder, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	d, err := newDeflater(r.Level)
	if err != nil {
		return nil, err
	}
	return &Encoder{recipe: r, deflater: d}, nil
}

// Encode makes a chunk of whole records: 1 to Recipe.Records of them. All chunks of an HDF5 dataset
// have one size, so a last chunk of fewer records is filled up with zeros. Encode returns the bytes
// to store and the chunk's filter mask, both as H5Dwrite_chunk takes them. Where deflate gains
// nothing, the bytes are the records as they are, and the mask says that no filter was applied.
//
// The chunk is valid until the next call, and may be records itself.
func (e *Encoder) Encode(records []byte) (chunk []byte, mask uint32, err error) {
	r := e.recipe
	if len(records) == 0 || len(records)%r.Record != 0 || len(records) > r.Bytes() {
		return nil, 0, fmt.Errorf("hdf5: %d bytes are not 1 to %d records of %d bytes", len(records), r.Records, r.Record)
	}
	plain := e.pad(records)
	in := plain
	if r.Shuffle && r.Elem > 1 {
		e.shuffled = grow(e.shuffled, len(plain))
		filter.Shuffle(e.shuffled, plain, r.Elem)
		in = e.shuffled
	}
	out, err := e.deflater.deflate(in)
	if err != nil {
		return nil, 0, fmt.Errorf("hdf5: deflate: %w", err)
	}
	if len(out) >= len(plain) {
		return plain, 1<<len(r.Filters()) - 1, nil // a bit for each filter that was left out
	}
	return out, 0, nil
}

// pad returns records filled up with zeros to a whole chunk.
func (e *Encoder) pad(records []byte) []byte {
	n := e.recipe.Bytes()
	if len(records) == n {
		return records
	}
	e.padded = grow(e.padded, n)
	clear(e.padded[copy(e.padded, records):])
	return e.padded
}

// grow returns b with length n, in new memory if its capacity is too small. The contents are
// undefined.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
