package encode

import (
	"fmt"

	"github.com/penstock/penstock/internal/codec/filter"
)

// Encoder makes chunks. It is for one goroutine; the same records and Recipe give the same
// chunk, whatever the Encoder made before.
type Encoder struct {
	recipe   Recipe
	deflater *deflater
	padded   []byte
	shuffled []byte
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

// Encode makes a chunk of whole records, at most Recipe.Records: fewer, which the last chunk
// of a dataset may have, are followed by zeros. It returns the bytes to store, for example by
// H5Dwrite_chunk, and their filter mask, which says that no filter was applied where deflate
// gains nothing. The chunk is valid until the next call, and may be records itself.
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
		return plain, 1<<len(r.Filters()) - 1, nil
	}
	return out, 0, nil
}

// pad returns a whole chunk.
func (e *Encoder) pad(records []byte) []byte {
	n := e.recipe.Bytes()
	if len(records) == n {
		return records
	}
	e.padded = grow(e.padded, n)
	clear(e.padded[copy(e.padded, records):])
	return e.padded
}

// grow returns b with length n, with new memory where it has too little.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
