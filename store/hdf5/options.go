package hdf5

import "github.com/penstock/penstock/store"

// Options configures Create.
type Options struct {
	// Records is how many records will be appended at most; 0 if that is not known.
	Records int64

	Overwrite bool           // replace an existing file or flat dataset
	Append    bool           // add to the existing file, which must have this schema
	Splits    []string       // names of the splits; each Record names one
	Journal   *store.Journal // nil: a build that ends before Commit leaves nothing

	// Replaces describes the file that is overwritten by its next generation; nil begins a new dataset. Records come in
	// the order of that file, and Splits are all of its splits.
	Replaces *Replacement

	// Compress compresses records by deflate; nil stores them as they are, so that readers can map them. An append
	// stores new records like the existing records, and takes no Compress.
	Compress *Compression

	// Workers is how many goroutines compress; 0 means GOMAXPROCS. The file is the same for any number. There is one
	// slot more than Workers, each with up to four chunks and 2 MB of memory.
	Workers int

	// Commit calls Note with a line about each array that it compresses: how, why, and the
	// ratio to expect. It calls Progress after each n more bytes that it has compressed; an error
	// of Progress ends Commit, which returns it. Both may be nil.
	Note     func(text string)
	Progress func(n int64) error

	by []container // the containers to use; nil means the package's containers
}

// Replacement describes a file that its next generation overwrites. The recipe, the source and the list of skipped
// samples stay.
type Replacement struct {
	Base    *store.Manifest           // manifest of the file; if it is not current, Create fails with store.ErrBusy
	Change  store.Change              // the change that makes the generation
	Splits  []store.Split             // which records are in which split
	Storage map[string]*store.Storage // how columns are compressed, by their names; Compress is nil
}

// containers returns the containers that can write the file; the first container writes new files.
func (o *Options) containers() []container {
	if o.by != nil {
		return o.by
	}
	return containers
}

// Compression asks for chunks of whole records, or of whole rows of a ragged field, compressed by gzip, which HDF5
// calls deflate. The zero value chooses everything automatically.
//
// Arrays with 1/64 of the dataset's bytes or more are compressed. Smaller arrays, which labels usually are, would gain
// nothing and can still be mapped, as can the offsets of ragged fields.
type Compression struct {
	// Level is 1 (fast) to 9 (small). 0 takes the lowest level that, for a sample of the records, makes at most 1 %
	// more bytes than 9.
	Level int

	// ChunkRecords is how many records share a chunk, ChunkBytes about how many bytes of records share a chunk; only
	// one of the two can be given. Without either, and in values of ragged fields without ChunkBytes, a chunk has one
	// record, or as many as fit in 64 KiB, and more if there would be more than 65,536 chunks.
	ChunkRecords int64
	ChunkBytes   int64

	// Shuffle says whether the first bytes of all elements come first, then their second bytes, and so on. The zero
	// value shuffles if that makes a sample of the records smaller.
	Shuffle Shuffle
}

// Shuffle says whether HDF5's shuffle filter, which groups the bytes of elements by their place, is applied before deflate.
type Shuffle int

// ShuffleAuto decides by a sample of the records.
const (
	ShuffleAuto Shuffle = iota
	ShuffleOn
	ShuffleOff
)
