package hdf5

import (
	"context"
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// base is the file that records are appended to, opened to read its compressed columns.
type base struct {
	data *store.Dataset
	file *os.File
	pool *chunk.Pool
}

func openBase(data *store.Dataset, workers int) (*base, error) {
	f, err := vfs.OpenRegular(data.Path)
	if err != nil {
		return nil, err
	}
	return &base{data: data, file: f, pool: chunk.NewPool(workers)}, nil
}

func (b *base) close() {
	b.pool.Close()
	b.file.Close()
}

// packs returns how the columns of the base, to which records are appended, are compressed. A chunk that has all rows
// of a short column gets more rows now, up to the usual number.
func (b *base) packs(columns []layout.Column) ([]*choice, error) {
	out := make([]*choice, len(columns))
	for k := range columns {
		old := &layout.Of(b.data).Columns[k]
		if !old.Packed {
			continue
		}
		d, err := layout.Of(b.data).Object(old, b.file)
		if err != nil {
			return nil, err
		}
		r, err := recipeOf(d, old)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", old.Path(), err)
		}
		if int64(r.Records) >= old.Rows {
			r.Records = max(r.Records, encode.ChunkRecords(columns[k].Rows, r.Record))
		}
		out[k] = &choice{Choice: encode.Choice{Recipe: r, Reason: "as before"}}
		if was := b.data.Manifest.Storage[old.Name]; was != nil {
			out[k].Reason = was.Reason
		}
	}
	return out, nil
}

// recipeOf returns how the chunks of a dataset that this package wrote were made. Chunks by other filters are refused:
// a file in which half of a column is compressed differently could not be made by a single build.
func recipeOf(d *meta.Dataset, c *layout.Column) (encode.Recipe, error) {
	r, ok := encode.RecipeOf(d, c.Spec.RecordBytes(), c.Spec.DType.Size())
	if !ok {
		return r, fmt.Errorf("this program did not write its filters %v, and cannot append to it; make a new file of "+
			"it first: %w", d.Filters, store.ErrUnsupported)
	}
	return r, nil
}

// copyBytes is about how many bytes of the base are decompressed at a time, which bounds the memory.
const copyBytes = 8 << 20

// copyColumn adds the rows of a column of the base. Complete chunks of the same recipe are copied without compressing
// them again. They are decompressed all the same, because the checksums of blocks are over the rows.
func (b *base) copyColumn(to *array, c *layout.Column) error {
	d, err := layout.Of(b.data).Object(c, b.file)
	if err != nil {
		return err
	}
	r, err := layout.Of(b.data).OpenColumn(c, b.file, nil, chunk.Options{Pool: b.pool})
	if err != nil {
		return err
	}
	table, err := d.Chunks()
	if err != nil {
		return err
	}
	per := d.Layout.ChunkDims[0]
	whole := int64(0) // rows, from the first on, whose chunks are copied as they are compressed
	if to.pack != nil && int64(to.object.Chunked.Records) == per && int64(len(table.Chunks))*per >= c.Rows {
		whole = c.Rows / per * per
	}
	buf := make([]byte, max(1, copyBytes/int64(to.object.Chunked.Bytes()))*per*int64(to.object.Chunked.Record))
	for at := int64(0); at < c.Rows; {
		n := min(int64(len(buf)/to.object.Chunked.Record), c.Rows-at)
		if at < whole {
			n = min(n, whole-at)
		}
		rows := buf[:n*int64(to.object.Chunked.Record)]
		if err := r.Records(context.Background(), rows, at, at+n); err != nil {
			return err
		}
		if at < whole {
			err = b.copyChunks(to, table.Chunks[at/per:(at+n)/per], rows)
		} else {
			err = to.append(rows, layout.CRC32C(rows))
		}
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// copyChunks copies compressed chunks as they are. rows are their decompressed rows, for the checksums.
func (b *base) copyChunks(to *array, chunks []meta.Chunk, rows []byte) error {
	n := to.object.Chunked.Bytes()
	for _, c := range chunks {
		raw := make([]byte, c.Size)
		if _, err := b.file.ReadAt(raw, c.Offset); err != nil {
			return pathless(err)
		}
		to.blocks.Add(rows[:n], layout.CRC32C(rows[:n]))
		if err := to.flushSums(); err != nil {
			return err
		}
		if err := to.pack.Write(raw, c.Mask, n); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
