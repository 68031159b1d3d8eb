package h5chunk

import (
	"fmt"
	"math"
	"strings"

	"github.com/penstock/penstock/internal/h5meta"
)

// Advice judges how a dataset is stored, for who reads it by records, which are steps along
// its first axis.
type Advice struct {
	Records     int64 // length of the first axis
	RecordBytes int64
	Bytes       int64   // of all elements
	Stored      int64   // bytes in the file for them, without index
	Ratio       float64 // Stored over Bytes; 0 where there are none

	// Of chunked layouts:
	ChunkBytes   int64 // of a chunk when its filters are undone
	ChunkRecords int64 // records that a chunk has a part of
	PerRecord    int64 // chunks that have a part of a record
	Chunks       int64 // stored
	Places       int64 // chunks of the whole shape; those not stored have the fill value
	Smallest     int64 // stored bytes of a chunk
	Largest      int64

	// Bytes of the chunks that have to be read over bytes of the records that are wanted, 1
	// being the best: for one record alone, and for a batch of records drawn at random.
	Amplification      float64
	BatchAmplification float64
	Batch              int

	// Gain is how much faster one record can be read at random after the file was rewritten,
	// uncompressed, in one piece: Amplification times what undoing the filters takes over
	// copying the bytes. 1 if the dataset can be mapped as it is.
	Gain     float64
	Problems []string // what is bad about it, most costly first; none if all is well
}

// What filters cost over copying the same bytes from a mapped file, rounded down from
// measurements of photographs: 50 to 100 times for deflate by zlib.
const (
	costDeflate = 50
	costLZF     = 8
	costShuffle = 2
	costSum     = 2
)

// manyChunks is where listing them begins to take libhdf5 before 1.14 minutes, as its time
// grows with the square of their number.
const manyChunks = 1 << 16

// libraryCache is how many bytes of chunks libhdf5 before 2.0 keeps of a dataset.
const libraryCache = 1 << 20

// Advise judges a dataset for batches of that many records. It reads the index of the
// chunks. The error is that of NewReader for the same dataset.
func Advise(data *h5meta.Dataset, batch int) (Advice, error) {
	r := &Reader{path: data.Path}
	if err := r.open(data); err != nil {
		return Advice{}, fmt.Errorf("h5chunk: dataset %q: %w", data.Path, err)
	}
	a := Advice{Records: r.Len(), RecordBytes: int64(r.grid.record), Batch: batch, Amplification: 1, BatchAmplification: 1, Gain: 1}
	if fits(a.RecordBytes, a.Records) {
		a.Bytes = a.RecordBytes * a.Records
	}
	if r.flat {
		a.judgeFlat(data)
	} else {
		a.judgeChunks(r, data)
	}
	if a.Bytes > 0 {
		a.Ratio = float64(a.Stored) / float64(a.Bytes)
	}
	return a, nil
}

func (a *Advice) judgeFlat(data *h5meta.Dataset) {
	if data.Layout.Offset >= 0 {
		a.Stored = data.Layout.Size
	}
	if err := data.Mappable(); err != nil {
		a.problem("%s", strings.TrimSuffix(err.Error(), ": "+h5meta.ErrUnsupported.Error()))
	}
}

func (a *Advice) judgeChunks(r *Reader, data *h5meta.Dataset) {
	g := &r.grid
	a.ChunkBytes, a.ChunkRecords, a.PerRecord = int64(g.size), g.deep, g.columns
	a.Chunks, a.Places = int64(len(r.chunks)), g.rows*g.columns
	for i, c := range r.chunks {
		a.Stored += c.Size
		a.Largest = max(a.Largest, c.Size)
		if i == 0 || c.Size < a.Smallest {
			a.Smallest = c.Size
		}
	}
	if g.record > 0 && g.rows > 0 {
		a.amplify(g)
	}
	a.Gain = a.Amplification * cost(data.Filters)
	a.complain(data)
}

// amplify computes how much of the chunks is read for nothing. A batch of b records touches
// rows x (1 - (1 - 1/rows)^b) rows on average.
func (a *Advice) amplify(g *grid) {
	row := float64(g.columns) * float64(g.size)
	a.Amplification = row / float64(g.record)
	rows := float64(g.rows)
	touched := rows * (1 - math.Pow(1-1/rows, float64(a.Batch)))
	if touched > 0 && a.Batch > 0 {
		distinct := float64(a.Records) * (1 - math.Pow(1-1/float64(a.Records), float64(a.Batch)))
		a.BatchAmplification = touched * row / (distinct * float64(g.record))
	}
}

// cost returns what undoing filters takes over copying.
func cost(filters []h5meta.Filter) float64 {
	c := 1.0
	for _, f := range filters {
		switch f.ID {
		case h5meta.FilterDeflate:
			c += costDeflate
		case h5meta.FilterLZF:
			c += costLZF
		case h5meta.FilterShuffle:
			c += costShuffle
		case h5meta.FilterFletcher32:
			c += costSum
		}
	}
	return c
}

// complain says what is wrong, most costly first.
func (a *Advice) complain(data *h5meta.Dataset) {
	if a.Amplification >= 2 {
		a.problem("reading one record takes %.4g times its bytes: %d chunks of %d bytes, each with a part of %d records",
			a.Amplification, a.PerRecord, a.ChunkBytes, a.ChunkRecords)
	}
	if a.PerRecord*a.ChunkBytes > libraryCache && a.ChunkRecords > 1 {
		a.problem("the chunks of one record, %d bytes, exceed libhdf5's default cache of 1 MiB: h5py inflates them again for every record", a.PerRecord*a.ChunkBytes)
	}
	if c := cost(data.Filters); c > costLZF {
		a.problem("%v has to be undone for every read, which takes about %.0f times what copying does", data.Filters[0], c)
	}
	if a.Chunks > manyChunks {
		a.problem("%d chunks: libhdf5 before 1.14 needs minutes to list them", a.Chunks)
	}
	if len(data.Filters) > 0 && a.Stored >= a.Bytes && a.Bytes > 0 && a.Chunks == a.Places {
		a.problem("filters save nothing: %d bytes are stored as %d", a.Bytes, a.Stored)
	}
}

func (a *Advice) problem(format string, args ...any) {
	a.Problems = append(a.Problems, fmt.Sprintf(format, args...))
}

// MendCommand returns the command line that rewrites a file so that its records can be mapped.
func MendCommand(from, to string) string { return "preprocess " + quote(from) + " " + quote(to) }

// quote makes one word for a POSIX shell.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./_-+,:@%", r)
	}
	if strings.HasPrefix(s, "-") {
		s = "./" + s // no flag
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
