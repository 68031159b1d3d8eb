package zarr

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Options configures Create. The zero value is usable.
type Options struct {
	ShardBytes int64          // size of the largest field of a shard; 0 means 256 MiB
	Overwrite  bool           // replace an existing dataset
	Append     bool           // add to the existing dataset, which must have this schema
	Splits     []string       // names of the splits; each Record names one
	Journal    *store.Journal // nil: a build that ends before Commit leaves nothing

	// Compress compresses records; nil stores them as they are, so that readers can map them. An append stores new
	// records like the existing records, and takes no Compress.
	Compress *Compression

	// Workers is how many goroutines compress; 0 means GOMAXPROCS. The files are the same for any number.
	Workers int

	// Commit calls Progress after each n more bytes of records that it has written; an error of Progress ends Commit,
	// which returns it. It may be nil.
	Progress func(n int64) error
}

// Compression compresses chunks by zstd. The zero value chooses everything automatically.
//
// Arrays with 1/64 of the dataset's bytes or more are compressed. Smaller arrays, and the offsets of ragged fields, can
// still be mapped.
type Compression struct {
	Level int // of zstd, 1 (fast) to 22 (small); 0 means 3

	// ChunkRecords is how many records share a chunk, ChunkBytes about how many bytes of records share a chunk; only
	// one of the two can be given. Without either, a chunk has one record, or as many as fit in 64 KiB.
	ChunkRecords, ChunkBytes int64
}

// defaultLevel is the level that zstd's command line uses by default.
const defaultLevel = 3

// check refuses options that exclude each other, and schemas that Zarr cannot hold: the decoders of other programs
// accept chunks of at most 2 GiB.
func (o *Options) check(schema store.Schema) error {
	if err := schema.Validate(); err != nil {
		return err
	}
	if schema.Index(metadataGroup) >= 0 {
		return errors.New(`field "penstock": datasets in Zarr keep their metadata under that name; choose another one`)
	}
	for _, f := range schema.Fields {
		if f.RecordBytes() > math.MaxInt32 {
			return fmt.Errorf("field %q: records of %d bytes are more than a chunk can hold", f.Name, f.RecordBytes())
		}
	}
	c := o.Compress
	switch {
	case c == nil:
		return nil
	case o.Append:
		return errors.New("an append keeps the compression of the dataset; leave --compress out")
	case c.Level < 0 || c.Level > 22:
		return fmt.Errorf("zstd level %d; there are 1 to 22", c.Level)
	case c.ChunkRecords < 0 || c.ChunkBytes < 0 || c.ChunkRecords > 0 && c.ChunkBytes > 0:
		return errors.New("chunks are of a number of records, or of bytes: choose one")
	}
	return nil
}

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// journal returns the journal of the build. Its inputs include the compression: a build that began with another
// compression is not resumed.
func (o *Options) journal() *store.Journal {
	if o.Journal == nil || o.Compress == nil {
		return o.Journal
	}
	return write.WithInput(o.Journal, "compression", fmt.Sprintf("%+v by zstd", *o.Compress))
}

const metadataGroup = "penstock" // the group of everything that is not a field
