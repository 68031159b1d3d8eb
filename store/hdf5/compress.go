package hdf5

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// check refuses settings that exclude each other or are out of range.
func (c *Compression) check() error {
	switch {
	case c == nil:
		return nil
	case c.Level < 0 || c.Level > 9:
		return fmt.Errorf("gzip level %d; there are 1 to 9", c.Level)
	case c.ChunkRecords < 0 || c.ChunkBytes < 0:
		return errors.New("chunks of fewer than no records or bytes")
	case c.ChunkRecords > 0 && c.ChunkBytes > 0:
		return errors.New("chunks of a number of records, and of bytes: choose one")
	case c.Shuffle < ShuffleAuto || c.Shuffle > ShuffleOff:
		return fmt.Errorf("there is no Shuffle %d", c.Shuffle)
	}
	return nil
}

// text returns the settings that a resumed build must share with the interrupted one. They include the deflate
// implementation: another implementation makes other bytes of the same rows.
func (c *Compression) text() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%+v by %s", *c, encode.Backend)
}

// smallPart decides which arrays are compressed: an array with less than 1/smallPart of the dataset's bytes is not
// worth it.
const smallPart = 64

// packs decides how each column is compressed; nil for a column that is not compressed.
func (c *Compression) packs(columns []layout.Column, sample func(k int, r encode.Recipe) ([]byte, error)) (
	[]*choice, error) {
	total := int64(0)
	for _, column := range columns {
		total += column.Rows * int64(column.Spec.RecordBytes())
	}
	out := make([]*choice, len(columns))
	for k, column := range columns {
		bytes := column.Rows * int64(column.Spec.RecordBytes())
		if column.Part == layout.Offsets || bytes == 0 || bytes < total/smallPart {
			continue
		}
		r := encode.Recipe{
			Record: column.Spec.RecordBytes(), Elem: column.Spec.DType.Size(),
			Records: c.chunkRows(column), Level: c.Level,
		}
		rows, err := sample(k, r)
		if err != nil {
			return nil, err
		}
		chosen, err := encode.Choose(r, encode.Shuffle(c.Shuffle), rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", column.Path(), err)
		}
		out[k] = &choice{chosen, len(rows)}
	}
	return out, nil
}

// chunkRows returns how many rows a chunk of the column has.
func (c *Compression) chunkRows(column layout.Column) int {
	size := int64(column.Spec.RecordBytes())
	n := int64(encode.ChunkRecords(column.Rows, int(size)))
	switch {
	case c.ChunkBytes > 0:
		n = max(1, c.ChunkBytes/size)
	case c.ChunkRecords > 0 && column.Part == layout.Whole:
		n = c.ChunkRecords
	}
	return int(min(n, column.Rows, math.MaxInt32))
}

// choice says how a column is compressed, and why.
type choice struct {
	encode.Choice
	sample int // size of the sample; 0 if the choice was not made by a sample
}

// manyChunks is the number of chunks from which on libhdf5 before 1.14 takes minutes to list them, as its time grows
// with the square of the number.
const manyChunks = 1 << 16

// note describes the choice for people.
func (c *choice) note(column layout.Column) string {
	chunks := (column.Rows + int64(c.Records) - 1) / int64(c.Records)
	rows := "1 row"
	if c.Records > 1 {
		rows = fmt.Sprint(c.Records, " rows")
	}
	text := fmt.Sprintf("%s: compressed by gzip level %d, %s (%d bytes) a chunk, %d of them", column.Path()[1:], c.Level,
		rows, c.Bytes(), chunks)
	if c.sample > 0 {
		text += fmt.Sprintf("; expected to become %.3f of its %d bytes, by a sample of %d", c.Ratio,
			column.Rows*int64(c.Record), c.sample)
	}
	text += ": " + c.Reason
	if c.sample > 0 && c.Ratio > poorRatio {
		text += "; that gains next to nothing, and without it the file could be mapped"
	}
	if chunks > manyChunks {
		text += "; that many chunks take libhdf5 before 1.14 minutes to list: larger ones would help"
	}
	return text
}

// poorRatio is the compression ratio above which compressing is not worthwhile.
const poorRatio = 0.97

// storage returns the manifest's entry for a compressed column.
func (c *choice) storage(column layout.Column, stored int64) *store.Storage {
	return &store.Storage{
		Filter: "gzip", Level: c.Level, Shuffle: c.Shuffle, ChunkRows: int64(c.Records),
		Bytes: column.Rows * int64(c.Record), Stored: stored, Encoder: encode.Backend, Reason: c.Reason,
	}
}

// A sample of a column predicts how well the column compresses. It has at most this many chunks, evenly spread over the
// column, and at most this many bytes, unless one chunk is larger.
const (
	sampleChunks = 16
	sampleBytes  = 4 << 20
)

// sampleOf reads a sample of column k of the parts. Its rows depend on nothing but the column, so that two builds of
// the same records choose alike and write the same bytes.
func sampleOf(part []layout.Column, k int, r encode.Recipe) ([]byte, error) {
	column := &part[k]
	all := max(1, column.Rows/int64(r.Records)) // whole chunks, unless there is none
	n := max(1, min(all, sampleChunks, sampleBytes/int64(r.Bytes())))
	var sample []byte
	for i := range n {
		first := i * all / n * int64(r.Records)
		rows := min(int64(r.Records), column.Rows-first)
		b := make([]byte, rows*int64(r.Record))
		if err := readRows(column, first, b); err != nil {
			return nil, pathless(err)
		}
		sample = append(sample, b...)
	}
	return sample, nil
}

// readRows fills b with the rows of a column from first on. The column must not be packed.
func readRows(c *layout.Column, first int64, b []byte) error {
	size := int64(c.Spec.RecordBytes())
	for len(b) > 0 {
		e, _ := c.Extent(first)
		n := min(int64(len(b)), (e.First+e.Count-first)*size)
		f, err := e.Open()
		if err != nil {
			return err
		}
		_, err = f.ReadAt(b[:n], e.Offset+(first-e.First)*size)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		b, first = b[n:], first+n/size
	}
	return nil
}

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}
