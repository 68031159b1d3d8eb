package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// foreign checks an HDF5 file that penstock did not write, as far as possible: data must lie within
// the file, chunk indexes must be sound, and chunks must match the checksums that their filters
// stored.
func (v *Verification) foreign(ctx context.Context, p *dataset.Target, opts Options) error {
	c := &chunkCheck{v: v, p: p, pool: chunk.NewPool(opts.Workers), progress: opts.Progress}
	defer c.pool.Close()
	seen := make(map[int64]bool) // by object header: a dataset may have several names
	var list []*meta.Dataset
	bytes := int64(0)
	for _, d := range p.Meta.Datasets() {
		if seen[d.HeaderAt] {
			continue
		}
		seen[d.HeaderAt] = true
		list = append(list, d)
		if opts.Begin == nil || !summed(d) {
			continue
		}
		if a, err := chunk.Advise(d, 1); err == nil {
			bytes += a.Chunks * a.ChunkBytes
		}
	}
	if opts.Begin != nil {
		opts.Begin(bytes)
	}
	for _, d := range list {
		if err := c.dataset(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// chunkCheck reads the chunks of many datasets, one dataset after the other, by a pool of
// decoders. buf holds the records of a row of chunks, or a part of them.
type chunkCheck struct {
	v        *Verification
	p        *dataset.Target
	pool     *chunk.Pool
	progress func(n int64)
	buf      []byte
}

// summed reports whether the chunks of d have checksums: the stream of deflate ends with an
// Adler-32 (RFC 1950), and the filter fletcher32 appends a checksum.
func summed(d *meta.Dataset) bool {
	return slices.ContainsFunc(d.Filters, func(f meta.Filter) bool {
		return f.ID == meta.FilterDeflate || f.ID == meta.FilterFletcher32
	})
}

// corrupt adds a corruption of records [first, end) at an offset of the file.
func (c *chunkCheck) corrupt(d *meta.Dataset, first, end, offset int64, problem string) {
	c.v.Corruptions = append(c.v.Corruptions, Corruption{
		Field: d.Path[1:], First: first, Last: max(first, end-1), File: filepath.Base(c.p.Path), Offset: max(0, offset),
		Problem: strings.TrimSuffix(problem, ": "+meta.ErrCorrupt.Error()),
	})
}

// unchecked notes that a dataset could not be checked.
func (c *chunkCheck) unchecked(d *meta.Dataset, why string) {
	c.v.Unchecked = append(c.v.Unchecked, d.Path+": "+why)
}

// noSums is the reason for a dataset without checksums.
const noSums = "it has no checksums"

// mostRecord is the number of bytes of a record above which its chunks are not checked: the record
// would have to be in memory as a whole.
const mostRecord = 1 << 30

// dataset checks one dataset. Corruption of one dataset does not end the check of the others.
func (c *chunkCheck) dataset(ctx context.Context, d *meta.Dataset) error {
	if err := d.Mappable(); errors.Is(err, meta.ErrCorrupt) {
		c.corrupt(d, 0, d.Records(), d.Layout.Offset, err.Error())
		return nil
	}
	if d.Err != nil || d.Layout.Kind != meta.Chunked {
		c.unchecked(d, noSums)
		return nil
	}
	table, err := d.Chunks()
	if err == nil {
		var r *chunk.Reader
		if r, err = chunk.NewReader(c.p.File, d, chunk.Options{Pool: c.pool}); err == nil {
			return c.chunks(ctx, d, table, r)
		}
	}
	if errors.Is(err, meta.ErrUnsupported) {
		c.unchecked(d, dataset.UnreadText(err))
		return nil
	}
	if errors.Is(err, meta.ErrCorrupt) {
		c.corrupt(d, 0, d.Records(), d.Layout.IndexAt, err.Error())
		return nil
	}
	return err
}

// chunks reads all records that have chunks, a row of chunks at a time: all chunks with the same
// first coordinate. Rows without chunks have the fill value and are passed over, since a sparse
// dataset may have many of them.
func (c *chunkCheck) chunks(ctx context.Context, d *meta.Dataset, table *meta.ChunkTable, r *chunk.Reader) error {
	switch {
	case len(d.Filters) == 0:
		c.unchecked(d, noSums)
		return nil
	case r.RecordBytes() > mostRecord:
		c.unchecked(d, fmt.Sprintf("its records, of %d bytes, are too large to be checked", r.RecordBytes()))
		return nil
	}
	deep := r.ChunkRecords()
	for i := 0; i < len(table.Chunks); {
		first, n := table.Chunks[i].Coord[0], 0
		for i+n < len(table.Chunks) && table.Chunks[i+n].Coord[0] == first {
			n++
		}
		i += n
		if err := c.row(ctx, d, r, first, min(first+deep, r.Len())); err != nil {
			return err
		}
		if summed(d) {
			c.v.Chunks += int64(n)
			if c.progress != nil {
				c.progress(int64(n) * table.Bytes)
			}
		}
	}
	if !summed(d) {
		c.unchecked(d, noSums)
	}
	return nil
}

// row reads records [first, end), which are in one row of chunks, in pieces of about 32 MiB. The
// first error of a row is reported for all its records.
func (c *chunkCheck) row(ctx context.Context, d *meta.Dataset, r *chunk.Reader, first, end int64) error {
	size := int64(r.RecordBytes())
	step := max(1, (32<<20)/max(1, size))
	for a := first; a < end; a += step {
		b := min(a+step, end)
		if int64(cap(c.buf)) < (b-a)*size {
			c.buf = make([]byte, (b-a)*size)
		}
		err := r.Records(ctx, c.buf[:(b-a)*size], a, b)
		if err == nil {
			continue
		}
		var e *chunk.Error
		if !errors.As(err, &e) {
			return err
		}
		text := e.Err.Error()
		if e.Filter != "" {
			text = e.Filter + ": " + text
		}
		c.corrupt(d, first, end, e.Offset, fmt.Sprintf("chunk %v: %s", e.Coord, text))
		return nil
	}
	return nil
}
