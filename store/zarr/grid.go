package zarr

import (
	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// About as many bytes are in a chunk, at most, unless one row has more: of one that is mapped, as other programs read
// all of it, and of one that is compressed.
const (
	plainChunk      = 1 << 20
	compressedChunk = 64 << 10
)

// Other programs read the index of a shard for each access, so the only shard of a ragged field has at most mostChunks
// chunks.
const mostChunks = 1 << 16

// smallPart of the bytes of a dataset is not worth compressing.
const smallPart = 64

// grids returns how the columns are cut into chunks. An append cuts them like the columns of its base; base is nil for
// a new dataset.
func grids(schema store.Schema, columns []layout.Column, opts *Options, base *base) []format.Grid {
	per := shardRecords(schema, opts.ShardBytes)
	total := int64(0)
	for _, c := range columns {
		total += c.Rows * int64(c.Spec.RecordBytes())
	}
	list := make([]format.Grid, len(columns))
	for k, c := range columns {
		g, rows := &list[k], int64(plainChunk)/int64(c.Spec.RecordBytes())
		if pack := opts.Compress; pack != nil && c.Part != layout.Offsets &&
			c.Rows*int64(c.Spec.RecordBytes()) > total/smallPart {
			g.Zstd = pack.Level
			if g.Zstd == 0 {
				g.Zstd = defaultLevel
			}
			rows = pack.rows(&c)
		}
		if base != nil {
			old := base.grids[c.Name]
			g.Zstd = old.Zstd
			if old.Chunk < layout.Of(base.data).Columns[k].Rows { // else it was as large as the dataset
				rows = old.Chunk
			}
			if c.Part == layout.Whole && base.data.Records > old.Shard {
				*g = old
				continue
			}
		}
		g.Chunk, g.Shard = cut(&c, max(1, rows), per)
	}
	return list
}

// shardRecords returns how many records a full shard has: whole pages of all fields that are not ragged, and a number
// with many divisors.
func shardRecords(schema store.Schema, shardBytes int64) int64 {
	n := write.ShardRecords(schema, shardBytes)
	if n > 256 {
		n -= n % 256
	}
	return n
}

// cut returns how many rows a chunk of a column has, at most, and how many a shard. A column that is shorter than a
// shard has one that is as long, and a ragged field has one in any case.
func cut(c *layout.Column, chunk, shard int64) (int64, int64) {
	n := max(1, c.Rows)
	if c.Part != layout.Whole {
		chunk, shard = max(chunk, (n+mostChunks-1)/mostChunks), n
	}
	for chunk = min(chunk, shard); c.Part == layout.Whole && shard%chunk != 0; {
		chunk--
	}
	chunk = min(chunk, n)
	if n <= shard {
		shard = (n + chunk - 1) / chunk * chunk
	}
	return chunk, shard
}

// rows returns how many rows of a column are compressed together, about.
func (c *Compression) rows(column *layout.Column) int64 {
	size := int64(column.Spec.RecordBytes())
	switch {
	case c.ChunkBytes > 0:
		return c.ChunkBytes / size
	case c.ChunkRecords > 0 && column.Part == layout.Whole:
		return c.ChunkRecords
	}
	return compressedChunk / size
}
