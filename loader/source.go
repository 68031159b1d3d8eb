package loader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Source is a dataset as the loader reads it: Len records, each with one value per field,
// found by number. *mmapds.Dataset is one. Every method may be called by several
// goroutines at once.
//
// A Source can do more by implementing [RaggedSource], [ChunkedSource], [GridSource], [ChunkSource], [MappedSource],
// [FaultSource], [CheckedSource], [RemoteSource], [DescribedSource], [NamedSource], [ClassedSource], [BoundedSource]
// and [Identifier]. Assert the interfaces that it implements, so that the compiler checks them:
//
//	var _ loader.MappedSource = (*MySource)(nil)
type Source interface {
	// Len returns the number of records. It never changes.
	Len() int

	// Specs returns the fields, always in the same order.
	Specs() []tensor.Spec

	// Slice returns records [a, b) of a field as one view, without copying where it can.
	// The bytes stay valid for as long as the caller holds a Retain.
	Slice(field string, a, b int) (tensor.View, error)

	// Gather copies record indices[i] of a field to dst[i*r:(i+1)*r], where r is the bytes
	// of one record; dst is exactly as long as that needs. It should return soon after ctx
	// is done.
	Gather(ctx context.Context, field string, indices []int, dst []byte) error

	// Prefetch starts to read records [a, b) of a field into memory, and does not wait.
	// It is a hint: its error is ignored, as the read that follows reports what is wrong.
	Prefetch(field string, a, b int) error

	// Retain keeps the memory of the Source valid until the matching Release. After the
	// Source is closed it returns an error.
	Retain() error

	// Release ends one Retain.
	Release()
}

// Column returns a number for each record, what sampler.NewBucket needs: the number of rows of a field of variable
// length, or the value of a field of one number.
func Column(ctx context.Context, src Source, field string) ([]float64, error) {
	at := slices.IndexFunc(src.Specs(), func(s tensor.Spec) bool { return s.Name == field })
	if at < 0 {
		return nil, fmt.Errorf("loader: column %q: there is no such field", field)
	}
	out, spec := make([]float64, src.Len()), src.Specs()[at]
	if spec.Ragged {
		lengths, err := Lengths(ctx, src, field)
		if err != nil {
			return nil, err
		}
		for i, n := range lengths {
			out[i] = float64(n)
		}
		return out, nil
	}
	size := spec.DType.Size()
	if spec.RecordBytes() != size {
		return nil, fmt.Errorf("loader: column %q: its records are of shape %v, and not one number; derive one from it",
			field, spec.Shape)
	}
	if err := src.Retain(); err != nil {
		return nil, err
	}
	defer src.Release()
	const most = 4096
	indices, data := make([]int, most), make([]byte, most*size)
	for at := 0; at < len(out); at += most {
		n := min(most, len(out)-at)
		order.Consecutive(at, indices[:n])
		if err := src.Gather(ctx, field, indices[:n], data[:n*size]); err != nil {
			return nil, fmt.Errorf("loader: column %q: %w", field, err)
		}
		for i := range n {
			out[at+i] = spec.DType.Read(data[i*size:]).Float64()
		}
	}
	return out, nil
}

// Lengths returns how many rows each record of a field of variable length has. It reads the
// field's offsets and no rows.
func Lengths(ctx context.Context, src Source, field string) ([]int, error) {
	r, ok := src.(RaggedSource)
	if !ok {
		return nil, fmt.Errorf("loader: lengths of %q: the Source has no fields of variable length", field)
	}
	if err := src.Retain(); err != nil {
		return nil, err
	}
	defer src.Release()
	const most = 4096
	out := make([]int, src.Len())
	indices, ends := make([]int, most), make([]int64, most+1)
	for at := 0; at < len(out); at += most {
		n := min(most, len(out)-at)
		order.Consecutive(at, indices[:n])
		if err := r.Lengths(ctx, field, indices[:n], ends[:n+1]); err != nil {
			return nil, fmt.Errorf("loader: lengths of %q: %w", field, err)
		}
		for i := range n {
			out[at+i] = int(ends[i+1] - ends[i])
		}
	}
	return out, nil
}

// RaggedSource is a [Source] with fields of variable length, whose Spec is Ragged. A field's
// offsets count rows and start with 0; there is one more offset than there are records.
type RaggedSource interface {
	Source

	// SliceRagged is Slice: the rows of records [a, b), and their offsets.
	SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error)

	// Lengths sets the offsets that GatherRagged will, and reads no rows.
	Lengths(ctx context.Context, field string, indices []int, offsets []int64) error

	// GatherRagged is Gather: it writes to the start of dst, and returns it, cut or grown to
	// the length of all rows.
	GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error)
}

// ChunkedSource is a [Source] whose records are not always one piece of its memory: they are
// compressed, computed or in several files.
type ChunkedSource interface {
	Source

	// Contiguous reports whether Slice of records [a, b) is a view without a copy. If not, the
	// loader gathers them into its own buffers, and counts the bytes as copied.
	Contiguous(field string, a, b int) bool
}

// GridSource is a [Source] with fields that are stored in chunks of N-D arrays, whose first axis is the axis of the
// records: HDF5 and Zarr. combine.Windows reads each chunk once for all windows that have a part of it.
type GridSource interface {
	Source

	// ChunkShape returns how many elements a chunk of a field has along each axis, the axis of the records first. It is nil if
	// the field is not in chunks, or cannot be read by them.
	ChunkShape(field string) []int

	// ReadChunk decodes the chunk that is the at[i]-th along axis i to dst, which has the bytes of a chunk.
	// Elements beyond the end of the array may be anything.
	ReadChunk(ctx context.Context, field string, at []int, dst []byte) error
}

// ChunkSource is a [Source] whose records are pieces of chunked arrays, each of which may be decoded for many
// records. *combine.Windows is one.
type ChunkSource interface {
	Source

	// Chunks returns which chunks of the named fields, or of all fields if there are no names, hold the records.
	// records nil means all records; otherwise the result numbers the records by their place in records.
	Chunks(fields []string, records []int) (sampler.Chunks, error)

	// KeepChunks has the Source keep decoded chunks for as long as order, an order of its records, needs them, in as
	// many bytes as the plan of order allows, and decode the next chunks in advance. A later call replaces order;
	// with nil the Source keeps no chunks for an order.
	KeepChunks(order *sampler.ChunkShuffle)

	// Decoded returns how many bytes of chunks were decoded so far.
	Decoded() int64
}

// MappedSource is a [Source] whose slices are memory that may have to be read from storage when
// it is touched.
type MappedSource interface {
	Source

	// Warm reads records [a, b) into memory, waiting in a system call. It returns an error if it
	// cannot. The loader calls it before it hands out a view: a page fault in the consumer would
	// stop a P of the Go scheduler, and crash the program if the file was truncated.
	Warm(field string, a, b int) error

	// IsWarm reports, without a system call, whether Slice of records [a, b) is a view of memory
	// that needs no reading. A loop builds batches from such views itself, without a worker. False
	// is always right.
	IsWarm(field string, a, b int) bool
}

// FaultSource is a [Source] of mapped memory that explains faults there.
type FaultSource interface {
	Source

	// Fault returns why a read at addr failed, if addr is in memory of the Source, and nil for
	// every other address. Its error should be a [RecordError] and name the file. The loader
	// asks when a read faults because a file was truncated, or its disk failed.
	Fault(addr uintptr) error
}

// CheckedSource is a [Source] of mapped memory that notices when its files were truncated.
type CheckedSource interface {
	Source

	// Intact returns an error if a file was truncated, so that bytes read from it may be zeros. The
	// loader asks at the end of an epoch, every 50 ms at most; a page fault beyond the end of the
	// file is an error earlier.
	Intact() error
}

// RemoteSource is a [Source] that fetches records over a network.
type RemoteSource interface {
	Source

	// LookaheadBytes returns how many bytes of coming records the Source wants to know, beyond
	// the records being read; 0 means that it wants to know no others.
	LookaheadBytes() int64

	// Fetch names records that will be needed, after all records of earlier calls. It may wait
	// until there is room for them.
	Fetch(ctx context.Context, field string, indices []int) error

	// NetworkStats returns the bytes fetched so far, how long reads waited for them in all, and
	// the highest rate seen, in bytes per second.
	NetworkStats() (fetched int64, waited time.Duration, rate float64)
}

// DescribedSource is a [Source] that says where its records are and how it reads them, for
// errors and [Stats].
type DescribedSource interface {
	Source

	// Location returns where a record of a field is stored: file, shard and byte. It is "" if
	// that is not known.
	Location(field string, record int) string

	// DescribeReads returns how a field is read and why so, and the part of its bytes that are
	// in memory, or -1 if that is not known.
	DescribeReads(field string) (how, why string, resident float64)
}

// NamedSource is a [Source] that knows the samples that its records were built from, for errors.
type NamedSource interface {
	Source

	// SourceName returns the name of the file, or other sample, that a record was built from; ""
	// if it is not known. It may wait for the name to be fetched.
	SourceName(ctx context.Context, record int) (string, error)
}

// ClassedSource is a [Source] that knows what the numbers of its labels mean.
type ClassedSource interface {
	Source

	// Classes returns the names of the values 0, 1, ... of a field; nil if the field has no names. The caller must not
	// change the slice.
	Classes(field string) []string
}

// BoundedSource is a [Source] that knows limits of the numbers in its fields, so that a filter need not read a block of
// records if the limits show that all of them pass, or that none passes.
type BoundedSource interface {
	Source

	// Bounds returns limits of the numbers that records [first, end) of a field have. It returns false if they are not
	// known, or may be NaN or infinite.
	Bounds(field string, first, end int) (low, high float64, ok bool)
}

// Identifier is a [Source] or a [Transform] with a name of its own. A [State] holds the names, so
// that [Resume] refuses another dataset or other transforms.
type Identifier interface {
	ID() string
}

// GenerationSource is a [Source] of datasets that change in generations. A [State] that was taken in some of them can
// be resumed in others with the same records.
type GenerationSource interface {
	Source

	// Generations returns the folders of the datasets, and the number of the generation that is open of each; none if
	// they have no generations.
	Generations() (folders []string, numbers []int)

	// IDIn returns the ID that the Source has in other generations of the datasets, "" if it is not known. The error
	// says which generations have other records or fields than the open generations, and what to open to read them.
	IDIn(numbers []int) (id string, err error)
}

// RecordError is an error of a [Source] whose text names the record that failed.
type RecordError interface {
	error

	// Record returns the number of the record.
	Record() int
}

// Capabilities are the optional interfaces that a [Source] implements; all others are nil. A
// Source that combines other Sources asks [CapabilitiesOf] once for each.
type Capabilities struct {
	Ragged     RaggedSource
	Chunked    ChunkedSource
	Grid       GridSource
	Chunks     ChunkSource
	Mapped     MappedSource
	Fault      FaultSource
	Checked    CheckedSource
	Remote     RemoteSource
	Described  DescribedSource
	Named      NamedSource
	Classed    ClassedSource
	Bounded    BoundedSource
	Generation GenerationSource
	Identifier Identifier
}

// CapabilitiesOf returns the optional interfaces that src implements. A Source that has only
// some methods of an interface is an error: most often a method is misspelt or has another
// signature, and without the error the Source would only be slower.
func CapabilitiesOf(src Source) (Capabilities, error) {
	var c Capabilities
	c.Ragged, _ = src.(RaggedSource)
	c.Chunked, _ = src.(ChunkedSource)
	c.Grid, _ = src.(GridSource)
	c.Chunks, _ = src.(ChunkSource)
	c.Mapped, _ = src.(MappedSource)
	c.Fault, _ = src.(FaultSource)
	c.Checked, _ = src.(CheckedSource)
	c.Remote, _ = src.(RemoteSource)
	c.Described, _ = src.(DescribedSource)
	c.Named, _ = src.(NamedSource)
	c.Classed, _ = src.(ClassedSource)
	c.Bounded, _ = src.(BoundedSource)
	c.Generation, _ = src.(GenerationSource)
	c.Identifier, _ = src.(Identifier)
	return c, incomplete(src)
}

// methods lists the methods of each interface that has several, with a test for each. A type
// assertion to the whole interface would not say which method is missing.
var methods = []struct {
	of, name string
	has      func(Source) bool
}{
	{"RaggedSource", "SliceRagged", implements[interface {
		SliceRagged(string, int, int, []int64) (tensor.View, error)
	}]},
	{"RaggedSource", "Lengths", implements[interface {
		Lengths(context.Context, string, []int, []int64) error
	}]},
	{"RaggedSource", "GatherRagged", implements[interface {
		GatherRagged(context.Context, string, []int, []int64, []byte) ([]byte, error)
	}]},
	{"GridSource", "ChunkShape", implements[interface{ ChunkShape(string) []int }]},
	{"GridSource", "ReadChunk", implements[interface {
		ReadChunk(context.Context, string, []int, []byte) error
	}]},
	{"ChunkSource", "Chunks", implements[interface {
		Chunks([]string, []int) (sampler.Chunks, error)
	}]},
	{"ChunkSource", "KeepChunks", implements[interface{ KeepChunks(*sampler.ChunkShuffle) }]},
	{"ChunkSource", "Decoded", implements[interface{ Decoded() int64 }]},
	{"MappedSource", "Warm", implements[interface{ Warm(string, int, int) error }]},
	{"MappedSource", "IsWarm", implements[interface{ IsWarm(string, int, int) bool }]},
	{"RemoteSource", "LookaheadBytes", implements[interface{ LookaheadBytes() int64 }]},
	{"RemoteSource", "Fetch", implements[interface {
		Fetch(context.Context, string, []int) error
	}]},
	{"RemoteSource", "NetworkStats", implements[interface {
		NetworkStats() (int64, time.Duration, float64)
	}]},
	{"GenerationSource", "Generations", implements[interface{ Generations() ([]string, []int) }]},
	{"GenerationSource", "IDIn", implements[interface{ IDIn([]int) (string, error) }]},
	{"DescribedSource", "Location", implements[interface{ Location(string, int) string }]},
	{"DescribedSource", "DescribeReads", implements[interface {
		DescribeReads(string) (string, string, float64)
	}]},
}

func implements[T any](src Source) bool {
	_, ok := src.(T)
	return ok
}

// incomplete returns an error for the first interface that src implements only in part.
func incomplete(src Source) error {
	has, lacks := make(map[string]string), make(map[string]string)
	for _, m := range methods {
		if m.has(src) {
			has[m.of] = m.name
		} else {
			lacks[m.of] = m.name
		}
	}
	for _, m := range methods {
		if has[m.of] != "" && lacks[m.of] != "" {
			return fmt.Errorf("%T has the method %s of loader.%s, but no %s with the signature it has there; implement all of "+
				"its methods, or none", src, has[m.of], m.of, lacks[m.of])
		}
	}
	return nil
}

// ID returns the identity of the Source, "" if the Source has no identity.
func (c Capabilities) ID() string {
	if c.Identifier == nil {
		return ""
	}
	return c.Identifier.ID()
}

// Generations returns the generations of a [GenerationSource], and none of any other Source.
func (c Capabilities) Generations() (folders []string, numbers []int) {
	if c.Generation == nil {
		return nil, nil
	}
	return c.Generation.Generations()
}

// SourceName returns a record's source name in a [NamedSource], and "" in any other Source.
func (c Capabilities) SourceName(ctx context.Context, record int) (string, error) {
	if c.Named == nil {
		return "", nil
	}
	return c.Named.SourceName(ctx, record)
}

// Contiguous reports whether records [a, b) are one piece of memory of the Source. A Source that is
// no [ChunkedSource] has all records in one piece.
func (c Capabilities) Contiguous(field string, a, b int) bool {
	return c.Chunked == nil || c.Chunked.Contiguous(field, a, b)
}

// LookaheadBytes returns the lookahead of a [RemoteSource], and 0 for any other Source.
func (c Capabilities) LookaheadBytes() int64 {
	if c.Remote == nil {
		return 0
	}
	return c.Remote.LookaheadBytes()
}

// NetworkStats returns the traffic of a [RemoteSource], and zero for any other Source.
func (c Capabilities) NetworkStats() (fetched int64, waited time.Duration, rate float64) {
	if c.Remote == nil {
		return 0, 0, 0
	}
	return c.Remote.NetworkStats()
}

// source returns src in the form that the fill package reads from.
func (c Capabilities) source(src Source) fill.Source {
	return fill.Source{Records: src, Ragged: c.Ragged, Chunked: c.Chunked, Mapped: c.Mapped, Fault: c.Fault}
}
