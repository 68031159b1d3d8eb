package zarr

import (
	"context"
	"errors"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// base is the dataset that records are appended to.
type base struct {
	data  *store.Dataset
	grids map[string]format.Grid // by column
	pool  *chunk.Pool
}

// openBase opens the dataset that is appended to. An append to Zarr writes a new folder in its place, so it takes and
// gives back the lock for that now: a conflict is reported before hours of reading, not after.
func openBase(path string) (*base, error) {
	if !layout.IsZarr(path) {
		return nil, errors.New("penstock did not write it as Zarr, so nothing can be appended")
	}
	data, err := store.OpenZarr(path, store.OpenOptions{})
	if err != nil {
		return nil, err
	}
	held, err := write.HoldForReplacement(path, data.Manifest) // a conflict is refused before records are read
	if err != nil {
		return nil, err
	}
	if err := held.Close(); err != nil {
		return nil, err
	}
	b := &base{data: data, grids: make(map[string]format.Grid), pool: chunk.NewPool(0)}
	for name, a := range layout.Of(data).Arrays {
		if len(a.Shards) == 0 {
			continue
		}
		grid := format.Grid{Chunk: a.Chunks[0], Shard: a.Shards[0]}
		if s := data.Manifest.Storage[name]; s != nil {
			grid.Zstd = s.Level
		}
		b.grids[name] = grid
	}
	return b, nil
}

func (b *base) close() { b.pool.Close() }

// unpackBytes is about how many bytes of the base are decompressed at a time.
const unpackBytes = 8 << 20

// unpack decompresses the rows of a column and gives them to a function.
func (b *base) unpack(c *layout.Column, to func(rows []byte) error) error {
	r, err := layout.Of(b.data).OpenColumn(c, nil, nil, chunk.Options{Pool: b.pool})
	if err != nil {
		return err
	}
	size := int64(c.Spec.RecordBytes())
	buf := make([]byte, max(1, unpackBytes/(r.ChunkRecords()*size))*r.ChunkRecords()*size)
	for _, e := range c.Extents {
		for row, end := e.Row, e.Row+e.Count; row < end; {
			n := min(int64(len(buf))/size, end-row)
			if err := r.Records(context.Background(), buf[:n*size], row, row+n); err != nil {
				return err
			}
			if err := to(buf[:n*size]); err != nil {
				return err
			}
			row += n
		}
	}
	return nil
}
