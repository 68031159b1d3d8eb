package zarr

import (
	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Largest size of a chunk, unless one row is larger: other programs read whole chunks. plainChunk is for chunks that
// are mapped, and compressedChunk for compressed chunks, which this program, too, reads as a whole for one record.
const (
	plainChunk      = 1 << 20
	compressedChunk = 64 << 10
)

// mostChunks limits the chunks in the only shard of a ragged field. Other programs read the index of a shard, which has
// 16 bytes for each chunk, at each access.
const mostChunks = 1 << 16

// smallPart decides which arrays are compressed: an array with less than 1/smallPart of the dataset's bytes is not
// worth it.
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
			if old.Chunk < layout.Of(base.data).Columns[k].Rows { // otherwise the chunk was cut to the dataset's length
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

// shardRecords returns how many records a full shard has: whole pages of all fields that are not ragged, and a multiple
// of 256, so that chunks of many sizes divide it.
func shardRecords(schema store.Schema, shardBytes int64) int64 {
	n := write.ShardRecords(schema, shardBytes)
	if n > 256 {
		n -= n % 256
	}
	return n
}

// cut returns how many rows a chunk of a column has, and how many rows a shard has. chunk and shard are the upper
// limits of both. A column that is shorter than a shard gets one shard of its own length, and a ragged field always
// has one shard. In Zarr, chunks have to divide the shard.
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

// rows returns about how many rows of a column are compressed together.
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
