package meta

import (
	"github.com/penstock/penstock/internal/hdf5/meta/datatype"
	"github.com/penstock/penstock/internal/hdf5/meta/index"
	"github.com/penstock/penstock/internal/hdf5/meta/message"
	"github.com/penstock/penstock/internal/hdf5/meta/source"
)

// The parts of a description, under the names by which callers know them.
type (
	// Extent is a piece of the file with one meaning.
	Extent = source.Extent
	// Error says in which structure of the file something is wrong.
	Error = source.Error
	// Announcer is an interface that the io.ReaderAt of a file may implement.
	Announcer = source.Announcer

	// Dataspace is the shape of a dataset or attribute.
	Dataspace = datatype.Dataspace
	// Datatype is the type of an element.
	Datatype = datatype.Datatype
	// Member is a field of a compound type, or a name of an enumeration.
	Member = datatype.Member
	// Padding says how strings of fixed length end.
	Padding = datatype.Padding

	// Layout says where the elements of a dataset are.
	Layout = message.Layout
	// Filter is one step that chunks go through when they are written.
	Filter = message.Filter
	// Fill is the fill value of a dataset and when it is written.
	Fill = message.Fill
	// FillState says where the value of elements that were never written comes from.
	FillState = message.FillState

	// Chunk is a stored piece of a chunked dataset.
	Chunk = index.Chunk
	// ChunkTable lists the chunks of a dataset that are stored.
	ChunkTable = index.ChunkTable
)

// Errors that callers branch on.
var (
	ErrNotHDF5     = source.ErrNotHDF5
	ErrCorrupt     = source.ErrCorrupt
	ErrUnsupported = source.ErrUnsupported
)

// The classes of datatypes.
const (
	Fixed     = datatype.Fixed
	Float     = datatype.Float
	Time      = datatype.Time
	String    = datatype.String
	Bitfield  = datatype.Bitfield
	Opaque    = datatype.Opaque
	Compound  = datatype.Compound
	Reference = datatype.Reference
	Enum      = datatype.Enum
	Vlen      = datatype.Vlen
	Array     = datatype.Array
	Complex   = datatype.Complex
)

// The ends of strings.
const (
	NullTerm = datatype.NullTerm
	NullPad  = datatype.NullPad
	SpacePad = datatype.SpacePad
)

// The layouts of HDF5.
const (
	Compact    = message.Compact
	Contiguous = message.Contiguous
	Chunked    = message.Chunked
	Virtual    = message.Virtual
)

// The states of a fill value.
const (
	FillDefault   = message.FillDefault
	FillUndefined = message.FillUndefined
	FillUser      = message.FillUser
)

// Ids of filters that have names here.
const (
	FilterDeflate     = message.FilterDeflate
	FilterShuffle     = message.FilterShuffle
	FilterFletcher32  = message.FilterFletcher32
	FilterSzip        = message.FilterSzip
	FilterNbit        = message.FilterNbit
	FilterScaleOffset = message.FilterScaleOffset
	FilterBzip2       = message.FilterBzip2
	FilterLZF         = message.FilterLZF
	FilterBlosc       = message.FilterBlosc
	FilterLZ4         = message.FilterLZ4
	FilterBitshuffle  = message.FilterBitshuffle
	FilterZstd        = message.FilterZstd
	FilterBlosc2      = message.FilterBlosc2
)
