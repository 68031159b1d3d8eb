package zarr

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Reader returns a reader of the records.
func (a *Array) Reader(opts chunk.Options) (*chunk.Reader, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	r, err := chunk.NewArray(chunk.Array{
		Path: "zarr: array /" + a.Path, Dims: a.Shape, ChunkDims: a.Chunks, Elem: int64(a.number.bytes()), Fill: a.fill,
		Chunks: chunks{a},
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, meta.ErrUnsupported)
	}
	return r, nil
}

// place says where a chunk is: the name of a file in the folder of the array and, inside of a shard, the number of the
// chunk.
type place struct {
	name  string
	inner int
}

// placeOf returns the place of the chunk with this number. Chunks are numbered along the rows of the grid.
func (a *Array) placeOf(number int64) (p place) {
	var buf [32]int64
	coord := buf[:len(a.Shape)]
	for i := len(coord) - 1; i >= 0; i-- {
		n := chunksOn(a.Shape[i], a.Chunks[i])
		coord[i] = number % n
		number /= n
	}
	if a.shard != nil {
		for i, n := range a.shard.per {
			p.inner = p.inner*int(n) + int(coord[i]%n)
			coord[i] /= n
		}
	}
	p.name = a.key(coord)
	if a.Path != "" {
		p.name = a.Path + "/" + p.name
	}
	return p
}

func chunksOn(length, n int64) int64 { return length/n + min(length%n, 1) }

// chunks implements chunk.Chunks.
type chunks struct{ *Array }

// Load implements chunk.Chunks.
func (c chunks) Load(ctx context.Context, number int64, buf *[]byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := c.placeOf(number)
	f, size, err := open(c.files, p.name)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	offset, n := int64(0), size
	if c.shard != nil {
		x, err := c.shard.find(p.name, f, size)
		if err != nil {
			return nil, err
		}
		var ok bool
		if offset, n, ok, err = x.extent(p.inner, size); err != nil || !ok {
			return nil, err
		}
	}
	if int64(cap(*buf)) < n || *buf == nil {
		*buf = make([]byte, n)
	}
	b := (*buf)[:n]
	return b, readFull(f, b, offset)
}

// Possible implements chunk.Chunks.
func (c chunks) Possible(stored int) bool { return c.coding.possible(stored) }

// Decode implements chunk.Chunks.
func (c chunks) Decode(dst, stored []byte, spare *[2][]byte) error {
	return c.coding.decode(dst, stored, spare)
}

// Name implements chunk.Chunks.
func (c chunks) Name(number int64) string {
	if p := c.placeOf(number); c.shard != nil {
		return fmt.Sprintf("%s: chunk %d", p.name, p.inner)
	} else {
		return p.name
	}
}
