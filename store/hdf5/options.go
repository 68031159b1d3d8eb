package hdf5

import "github.com/penstock/penstock/store"

// Options configures Create.
type Options struct {
	// Records is how many records will be appended at most; 0 if that is not known.
	Records int64

	Overwrite bool           // replace an existing file or flat dataset
	Append    bool           // add to the existing file, which must have this schema
	Splits    []string       // names of the splits; each Record names one
	Journal   *store.Journal // nil: a build that does not come to Commit leaves nothing

	// Replaces describes the file that is overwritten by its next generation; nil begins a new dataset. Records come in
	// the order that they have, and Splits are all of its splits.
	Replaces *Replacement

	// Compress has records deflated; nil stores them as they are, for readers to map. An append stores
	// new records like the existing ones, and takes no Compress.
	Compress *Compression

	// Workers is how many goroutines deflate; 0 means GOMAXPROCS. The file is the same for any
	// number. Each, and one more, holds up to four chunks and 2 MB of memory.
	Workers int

	// Commit calls Note with a line about each array that it compresses: how, why, and the
	// ratio to expect. It calls Progress after each n more bytes that it has compressed; an error
	// of Progress ends Commit, which returns it. Both may be nil.
	Note     func(text string)
	Progress func(n int64) error

	by []container // what writes files, see containers; nil: those
}

// Replacement describes a file that its next generation overwrites. Recipe, source and list of skipped samples stay.
type Replacement struct {
	Base    *store.Manifest           // of the file; while it has another one, Create fails with store.ErrBusy
	Change  store.Change              // the difference
	Splits  []store.Split             // which records are in which split
	Storage map[string]*store.Storage // how columns are compressed, by their names; Compress is nil
}

// containers returns those that can write the file, the one for new files first.
func (o *Options) containers() []container {
	if o.by != nil {
		return o.by
	}
	return containers
}

// Compression asks for chunks of whole records, or of whole rows of a ragged field, compressed by
// gzip, which HDF5 calls deflate. The zero value chooses everything automatically.
//
// Compressed are the arrays that have 1/64 of the dataset's bytes or more. The others, which
// labels usually are, would gain nothing, and so stay where they can be mapped, as do the
// offsets of ragged fields.
type Compression struct {
	// Level is 1 (fast) to 9 (small). 0 takes, by a sample of the records, the lowest that makes
	// at most 1 % more than 9 does.
	Level int

	// ChunkRecords is how many records share a chunk, ChunkBytes about how many bytes of them do;
	// only one can be given. Without, and in values of ragged fields without ChunkBytes, a chunk
	// is one record, or as many as make 64 KiB, more where there would be more than 65,536 chunks.
	ChunkRecords int64
	ChunkBytes   int64

	// Shuffle says whether the first bytes of all elements come first, then their second bytes,
	// and so on. The zero value does that where it makes a sample of the records smaller.
	Shuffle Shuffle
}

// Shuffle says whether to shuffle.
type Shuffle int

// ShuffleAuto decides by a sample of the records.
const (
	ShuffleAuto Shuffle = iota
	ShuffleOn
	ShuffleOff
)
