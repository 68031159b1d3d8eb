package chunk

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// dataset describes the data of a Reader: the places of the chunks, their filters, and a cache of chunks of which a
// part was wanted. Except for the cache, which has its own lock, it is constant.
type dataset struct {
	path    string
	src     source
	grid    grid
	filter  pipeline
	outside Chunks // for an array that is not in an HDF5 file, in place of src, filter and chunks
	number  numbers
	fill    []byte // value of elements that were never written; nil means zeros

	exact  bool // nothing is read ahead
	flat   bool // not chunked: one piece at base, which is -1 if it was never written
	base   int64
	chunks []meta.Chunk
	places []int64 // places of chunks in the grid; nil if every place has a chunk

	cache *cache
	pool  *Pool
}

// records returns the number of records.
func (d *dataset) records() int64 { return d.grid.dims[0] }

// open refuses data that cannot be read before it reads the chunk index, which may be large.
func (d *dataset) open(data *meta.Dataset, opts Options) (err error) {
	if err := readable(data, opts.References); err != nil {
		return err
	}
	if err := d.lay(data); err != nil {
		return err
	}
	if d.filter, err = newPipeline(data.Filters, data.Type.Size, d.grid.size); err != nil {
		return err
	}
	d.number = numbersOf(data.Type)
	d.setFill(data)
	if d.flat {
		return nil
	}
	return d.index(data)
}

// readable refuses data that is stored elsewhere, and types without fixed bytes, unless their references are wanted.
func readable(data *meta.Dataset, references bool) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), meta.ErrUnsupported)
	}
	switch {
	case data.Err != nil:
		return data.Err
	case data.Null:
		return refuse("a null dataspace has no elements")
	case len(data.External) > 0:
		return refuse("its data is in external files (%s)", data.External[0].Name)
	case data.Layout.Kind == meta.Virtual:
		return refuse("a virtual dataset has its data in other datasets%s", firstSource(data))
	case data.Layout.Kind != meta.Chunked && len(data.Filters) > 0:
		return refuse("layout %v with filter %v", data.Layout.Kind, data.Filters[0])
	case !plainBytes(data.Type, references):
		return refuse("type %v", data.Type)
	}
	return nil
}

// firstSource names one of the sources of a virtual dataset.
func firstSource(data *meta.Dataset) string {
	list, err := data.Sources()
	if err != nil || len(list) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s:%s)", list[0].File, list[0].Path)
}

// plainBytes reports whether the bytes of an element are its value, or references that are wanted.
func plainBytes(t *meta.Datatype, references bool) bool {
	switch t.Class {
	case meta.Vlen, meta.Reference:
		return references
	case meta.Time:
		return false
	case meta.Array, meta.Enum, meta.Complex:
		return plainBytes(t.Base, references)
	case meta.Compound:
		for _, m := range t.Members {
			if !plainBytes(m.Type, references) {
				return false
			}
		}
	}
	return !t.Format.VAXOrder
}

// setFill sets the value of elements in chunks that are not stored. The default fill value is zero, which needs no
// copy.
func (d *dataset) setFill(data *meta.Dataset) {
	if data.Fill.State != meta.FillUser {
		return
	}
	d.fill = append([]byte(nil), data.Fill.Value...)
	d.number.decode(d.fill)
}

// lay computes how records are divided into chunks. Data without chunks is divided into pieces that are read at a time.
func (d *dataset) lay(data *meta.Dataset) (err error) {
	dims, chunk := data.Dims, data.Layout.ChunkDims
	if len(dims) == 0 {
		dims = []int64{1}
	}
	if d.flat = data.Layout.Kind != meta.Chunked; d.flat {
		d.base, chunk = data.Layout.Offset, flatChunk(dims, data.Type.Size)
	}
	d.grid, err = newGrid(dims, chunk, data.Type.Size)
	return err
}

// flatChunk divides data without chunks into pieces of about 1 MiB, so that several goroutines can work on it.
func flatChunk(dims []int64, elem int64) []int64 {
	chunk := append([]int64(nil), dims...)
	record := elem
	for _, n := range dims[1:] {
		if !fits(record, n) {
			break
		}
		record *= n
	}
	chunk[0] = max(1, (1<<20)/max(1, record))
	for i := range chunk {
		chunk[i] = max(chunk[i], 1)
	}
	return chunk
}

// index reads the table of chunks. If every place of the grid has a chunk, their places need no list.
func (d *dataset) index(data *meta.Dataset) error {
	table, err := data.Chunks()
	if err != nil {
		return err
	}
	d.chunks = table.Chunks
	if int64(len(d.chunks)) == d.grid.rows*d.grid.columns {
		return nil
	}
	d.places = make([]int64, len(d.chunks))
	for i, c := range d.chunks {
		d.places[i] = d.grid.place(c.Coord)
	}
	return nil
}

// stored is the place of a chunk in the grid and in the file.
type stored struct {
	place        int64
	offset, size int64
	mask         uint32
}

// find returns the chunk at a place of the grid. ok is false if the chunk was never written.
func (d *dataset) find(place int64) (s stored, ok bool) {
	if d.flat {
		size := int64(d.grid.size)
		return stored{place, d.base + place*size, size, 0}, d.base >= 0
	}
	i := int(place)
	if d.places != nil {
		i = sort.Search(len(d.places), func(i int) bool { return d.places[i] >= place })
		if i == len(d.places) || d.places[i] != place {
			return s, false
		}
	}
	c := &d.chunks[i]
	return stored{place, c.Offset, c.Size, c.Mask}, true
}

// fillEntry decodes a chunk into the cache, unless another caller has done so.
func (d *dataset) fillEntry(w *worker, e *entry, at stored) error {
	e.fill.Lock()
	defer e.fill.Unlock()
	if e.ok {
		return nil
	}
	err := d.decode(w, e.room(d.grid.size), at)
	e.ok = err == nil
	return err
}

// decode reads a chunk, undoes its filters, and converts its numbers to this machine's byte order.
func (d *dataset) decode(w *worker, dst []byte, at stored) error {
	raw, err := d.src.bytes(at.offset, at.size, &w.raw)
	if err != nil {
		return err
	}
	if err := w.undo(&d.filter, dst, raw, at.mask); err != nil {
		return err
	}
	d.number.decode(dst)
	return nil
}

// fillArray is like fillEntry, for a chunk that is not in an HDF5 file.
func (d *dataset) fillArray(ctx context.Context, w *worker, e *entry) error {
	e.fill.Lock()
	defer e.fill.Unlock()
	if e.ok {
		return nil
	}
	written, err := d.decodeArray(ctx, w, e.place, func() []byte { return e.room(d.grid.size) })
	e.ok, e.blank = err == nil, !written
	return err
}

// decodeArray decodes a chunk into the memory that room returns, unless the chunk was never written. room is called
// only after the stored size was found possible.
func (d *dataset) decodeArray(ctx context.Context, w *worker, place int64,
	room func() []byte) (written bool, err error) {
	stored, err := d.outside.Load(ctx, place, &w.raw)
	if err != nil || stored == nil {
		return false, err
	}
	if !d.outside.Possible(len(stored)) {
		return false, fmt.Errorf("no chunk of %d bytes is stored as %d", d.grid.size, len(stored))
	}
	return true, d.outside.Decode(room(), stored, &w.spare)
}

// foreseeable reports whether reading chunks ahead pays. If a record spans several chunks, all workers are busy
// anyway.
func (d *dataset) foreseeable() bool {
	return !d.exact && d.grid.columns == 1 && (len(d.filter.steps) > 0 || d.outside != nil) && d.grid.size > aloneBytes
}

// prefetch puts a chunk into the cache. Its error is dropped, and the call that wants the chunk meets it again.
func (d *dataset) prefetch(w *worker, place int64) {
	if d.outside != nil {
		e := d.cache.take(place)
		defer d.cache.give(e)
		_ = d.fillArray(context.Background(), w, e)
		return
	}
	s, ok := d.find(place)
	if !ok || d.filter.plain(s.mask) || !d.filter.possible(s.size) {
		return
	}
	e := d.cache.take(place)
	defer d.cache.give(e)
	_ = d.fillEntry(w, e, s)
}

// cached returns how many chunks the cache may have. For reading in order, more chunks than one row of the grid are of
// no use. If a record needs a whole row that does not fit, a smaller cache would never hit, so there is one chunk for
// each worker and one more.
func (d *dataset) cached(limit int64) int {
	if limit <= 0 {
		limit = cacheBytes
	}
	least := d.pool.Workers() + 1
	row := d.grid.columns + int64(least)
	if d.grid.size > 0 && row > limit/int64(d.grid.size) {
		return least
	}
	return int(row)
}

// refused adds to an error of open the name of the dataset and, if a command can rewrite the dataset, that command.
func refused(data *meta.Dataset, err error) error {
	if line := data.Remedy("OLD.h5", "NEW.h5"); line != "" && errors.Is(err, meta.ErrUnsupported) {
		return fmt.Errorf("hdf5: dataset %q: %w; make a file that can be read: %s", data.Path, err, line)
	}
	return fmt.Errorf("hdf5: dataset %q: %w", data.Path, err)
}
