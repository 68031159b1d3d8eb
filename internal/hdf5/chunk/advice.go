package chunk

import (
	"fmt"
	"math"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
)

// Advice judges how a dataset is stored, for readers of records, which are steps along its first axis.
type Advice struct {
	Records     int64 // length of the first axis
	RecordBytes int64
	Bytes       int64   // bytes of all elements
	Stored      int64   // bytes of the elements as stored, without the index
	Ratio       float64 // Stored divided by Bytes; 0 if there are no elements

	// Of chunked layouts:
	ChunkBytes   int64 // bytes of a chunk without filters
	ChunkRecords int64 // records of which a chunk has a part
	PerRecord    int64 // chunks that have a part of one record
	Chunks       int64 // stored
	Places       int64 // chunks of the whole shape; those not stored have the fill value
	Smallest     int64 // stored bytes of the smallest chunk
	Largest      int64

	// Bytes of the chunks that have to be read divided by bytes of the wanted records: for one record alone, and for a
	// batch of records drawn at random. 1 is the best.
	Amplification      float64
	BatchAmplification float64
	Batch              int

	// The time in which package mmapds reads a record at random, in nanoseconds of CPU time with the file in memory: as
	// the file is, and after it was rewritten, uncompressed, in one piece. Both are estimates; see the constants of
	// this file.
	Nanos          float64
	ConvertedNanos float64

	Problems []string // faults of the storage, most costly first; none if all is well
}

// Gain returns how much faster one record is read at random after the file was rewritten. A gain below 1.05 is within
// the error of the estimate.
func (a *Advice) Gain() float64 { return a.Nanos / a.ConvertedNanos }

// Costs of reading, in nanoseconds of one core of an AMD EPYC server, fitted to BenchmarkAdvice, which compares
// predictions with measurements.
const (
	nanosRecord      = 400  // to read a record in one piece
	nanosByte        = 0.04 // to copy a byte
	nanosPacked      = 100  // in addition, for a record that is not in one piece
	nanosChunk       = 150  // for each chunk that has a part of the record
	nanosRun         = 10   // for each run of bytes that is copied separately
	nanosInflated    = 0.35 // deflate: a byte of the chunk ...
	nanosDeflated    = 2.4  // ... and one of its stored bytes
	nanosLZF         = 1.5  // a byte of the chunk
	nanosShuffled    = 0.03
	nanosFletcher32  = 0.05
	nanosScaled      = 7    // scaleoffset: a number
	nanosSwapped     = 0.13 // a byte of a big-endian record
	nanosWorthSaying = 8 * nanosByte
)

// nanosCodec is the time of the registered codecs for a byte of the chunk.
var nanosCodec = map[uint16]float64{
	meta.FilterSzip: 7, meta.FilterNbit: 4, meta.FilterBzip2: 25, meta.FilterLZ4: 0.7, meta.FilterZstd: 1.8,
	meta.FilterBlosc: 1, meta.FilterBlosc2: 1, meta.FilterBitshuffle: 1.4,
}

// manyChunks is the number of chunks from which on libhdf5 before 1.14 takes minutes to list them, as its time grows
// with the square of the number.
const manyChunks = 1 << 16

// libraryCache is how many bytes of a dataset's chunks libhdf5 before 2.0 keeps.
const libraryCache = 1 << 20

// Advise judges a dataset for batches of that many records. It reads the index of the chunks, and returns the error of
// NewReader for the same dataset. With ErrUnsupported the Advice still has everything that is known of the storage, up
// to Largest.
func Advise(data *meta.Dataset, batch int) (Advice, error) {
	d := &dataset{path: data.Path}
	if err := d.open(data, Options{}); err != nil {
		return storedAs(data), refused(data, err)
	}
	a := storage(d, data)
	a.Batch, a.Amplification, a.BatchAmplification = batch, 1, 1
	if d.flat {
		a.judgeFlat(data)
	} else {
		a.judgeChunks(d, data)
	}
	a.ConvertedNanos = nanosRecord + nanosByte*float64(a.RecordBytes)
	a.Nanos = a.ConvertedNanos
	if d.grid.record > 0 && (!d.flat || len(a.Problems) > 0) {
		a.Nanos += nanos(d)
	}
	return a, nil
}

// judgeFlat names the properties that keep a contiguous dataset from being mapped. Batches of such a dataset have to be
// copied.
func (a *Advice) judgeFlat(data *meta.Dataset) {
	switch err := data.Mappable(); {
	case err != nil:
		a.problem("%s", strings.TrimSuffix(err.Error(), ": "+meta.ErrUnsupported.Error()))
	case !data.Aligned():
		a.problem("it starts at byte %d, which is no multiple of its element size, so it is copied", data.Layout.Offset)
	}
}

// judgeChunks names the properties that make reads of a chunked dataset slow: chunks that hold more than a batch needs,
// and filters.
func (a *Advice) judgeChunks(d *dataset, data *meta.Dataset) {
	g := &d.grid
	if g.record > 0 && g.rows > 0 {
		a.amplify(g)
	}
	a.complain(d, data)
}

// amplify computes which part of the chunks is read for nothing. A batch of b records touches rows x (1 - (1 -
// 1/rows)^b) rows on average.
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

// nanos returns how much longer reading a record, of at least one byte, takes than reading one in one piece.
func nanos(d *dataset) float64 {
	g, columns := &d.grid, float64(d.grid.columns)
	n := nanosPacked + nanosChunk*columns
	if !d.number.stored() {
		n += nanosSwapped * float64(g.record)
	}
	if !g.whole {
		n += nanosRun * runs(g)
	}
	filtered, share := undoing(d)
	return n + share*missed(g)*columns*(filtered+nanosByte*float64(g.size))
}

// runs returns how many pieces a record has to be copied in.
func runs(g *grid) float64 {
	var p piece
	g.piece(&p, 0)
	return float64(g.record) / float64(max(1, p.run))
}

// undoing returns how long undoing the filters of an average chunk takes, and the share of chunks that went through a
// filter.
func undoing(d *dataset) (nanos, share float64) {
	chunks, stored := 0, int64(0)
	for _, c := range d.chunks {
		if !d.filter.plain(c.Mask) {
			chunks++
			stored += c.Size
		}
	}
	if chunks == 0 {
		return 0, 0
	}
	return d.filter.nanos(float64(stored) / float64(chunks)), float64(chunks) / float64(d.grid.rows*d.grid.columns)
}

// nanos returns how long undoing the filters of a chunk of that many stored bytes takes.
func (p *pipeline) nanos(stored float64) (n float64) {
	for _, s := range p.steps {
		switch s.id {
		case meta.FilterDeflate:
			n += nanosInflated*float64(p.size) + nanosDeflated*stored
		case meta.FilterLZF:
			n += nanosLZF * float64(p.size)
		case meta.FilterScaleOffset:
			n += nanosScaled * float64(s.scaled.count)
		case meta.FilterShuffle:
			n += nanosShuffled * float64(p.size)
		case meta.FilterFletcher32:
			n += nanosFletcher32 * stored
		default:
			n += nanosCodec[s.id] * float64(p.size)
		}
	}
	return n
}

// missed returns how often the chunks of a record are not in the cache of two workers, when records are read at random.
// Each chunk is read at least once.
func missed(g *grid) float64 {
	if g.rows == 0 || g.whole && g.deep == 1 {
		return 1
	}
	kept := float64(1)
	if g.columns <= 3 {
		kept = float64((g.columns + 3) / g.columns)
	}
	if g.size > 0 && g.columns > cacheBytes/int64(g.size) {
		kept = 0
	}
	rows := float64(g.rows)
	return max(1-kept/rows, rows/float64(g.dims[0]))
}

// complain lists the faults of the storage, most costly first.
func (a *Advice) complain(d *dataset, data *meta.Dataset) {
	if a.Amplification >= 2 {
		a.problem("one record needs %s with a part of %s, %.4g times its bytes",
			count(a.PerRecord, fmt.Sprintf("chunk of %d bytes", a.ChunkBytes), fmt.Sprintf("chunks of %d bytes", a.ChunkBytes)),
			count(a.ChunkRecords, "record", "records"), a.Amplification)
	}
	if a.PerRecord*a.ChunkBytes > libraryCache && a.ChunkRecords > 1 {
		a.problem("the chunks of one record, %d bytes, exceed the 1 MiB that libhdf5 before 2.0 keeps: h5py makes them "+
			"again for every record", a.PerRecord*a.ChunkBytes)
	}
	if n, share := undoing(d); share > 0 && a.ChunkBytes > 0 && n > nanosWorthSaying*float64(a.ChunkBytes) {
		a.problem("%v has to be undone for every read, which takes about %.0f times what copying does",
			filterList(data.Filters), n/(nanosByte*float64(a.ChunkBytes)))
	}
	if a.Chunks > manyChunks {
		a.problem("%d chunks: libhdf5 before 1.14 needs minutes to list them", a.Chunks)
	}
	if len(data.Filters) > 0 && a.Stored >= a.Bytes && a.Bytes > 0 && a.Chunks == a.Places {
		a.problem("filters save nothing: %d bytes are stored as %d", a.Bytes, a.Stored)
	}
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func filterList(filters []meta.Filter) string {
	names := make([]string, len(filters))
	for i, f := range filters {
		names[i] = f.Name
	}
	return strings.Join(names, "+")
}

func (a *Advice) problem(format string, args ...any) {
	a.Problems = append(a.Problems, fmt.Sprintf(format, args...))
}

// ConvertCommand returns the command line that rewrites a file so that its records can be mapped. fields lists datasets
// in the syntax of --fields, "" for all datasets. The command is "" if a name cannot be printed.
func ConvertCommand(from, to, fields string) string {
	line := shell.Penstock("preprocess", from, to)
	if fields == "" || line == "" {
		return line
	}
	return shell.Command(line+" --fields", fields)
}

// RepackCommand returns the command line that rewrites a file so that one of its datasets can be read; "" if h5repack
// cannot rewrite the dataset, or a name cannot be printed.
func RepackCommand(data *meta.Dataset, from, to string) string {
	a, ok := shell.Quote(from)
	b, also := shell.Quote(to)
	if !ok || !also {
		return ""
	}
	return data.Remedy(a, b)
}

// storedAs describes the storage of a dataset that cannot be read here, as far as its metadata and the index of its
// chunks can be read.
func storedAs(data *meta.Dataset) Advice {
	d := &dataset{path: data.Path}
	if data.Err != nil || data.Null || d.lay(data) != nil || !d.flat && d.index(data) != nil {
		return Advice{}
	}
	return storage(d, data)
}

// storage counts the bytes of a dataset in the file.
func storage(d *dataset, data *meta.Dataset) Advice {
	a := Advice{Records: d.records(), RecordBytes: int64(d.grid.record)}
	if fits(a.RecordBytes, a.Records) {
		a.Bytes = a.RecordBytes * a.Records
	}
	if !d.flat {
		a.countChunks(d)
	} else if data.Layout.Offset >= 0 && len(data.External) == 0 {
		a.Stored = data.Layout.Size
	}
	if a.Bytes > 0 {
		a.Ratio = float64(a.Stored) / float64(a.Bytes)
	}
	return a
}

// countChunks counts the chunks of a dataset and their bytes.
func (a *Advice) countChunks(d *dataset) {
	g := &d.grid
	a.ChunkBytes, a.ChunkRecords, a.PerRecord = int64(g.size), g.deep, g.columns
	a.Chunks, a.Places = int64(len(d.chunks)), g.rows*g.columns
	for i, c := range d.chunks {
		a.Stored += c.Size
		a.Largest = max(a.Largest, c.Size)
		if i == 0 || c.Size < a.Smallest {
			a.Smallest = c.Size
		}
	}
}
