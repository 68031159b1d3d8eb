package loader

import (
	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Transform makes the records of a field into what batches have, in the same pass that
// gathers them. Images and Pad are two. By a method ID() string a Transform says what it does,
// so that Resume refuses another.
type Transform interface {
	// Output returns what a record becomes. The Name is that of in.
	Output(in tensor.Spec) (tensor.Spec, error)

	// Worker returns the function that one goroutine will use, with whatever state of its
	// own. The number of the goroutine is for its logs: results must not depend on it.
	Worker(in tensor.Spec, id int) (RecordFunc, error)
}

// RecordFunc writes to dst, whose length is that of the output, what it makes of the stored
// bytes src, which it must not change. It keeps neither, and should not allocate.
type RecordFunc func(dst, src []byte, r Record) error

// Record says which record a RecordFunc works on.
type Record struct {
	Index    int // its number in the Source
	Position int // its place in the epoch, of all ranks
	Epoch    int
	Seed     uint64 // Options.Seed
	repeats  bool
}

// Rand returns the record's own random stream: a function of (seed, epoch, record), and of
// the position too if the Sampler may have a record more than once in an epoch, so that the
// results are the same for any number of workers and of ranks.
func (r Record) Rand() transforms.Rand {
	n := uint64(r.Index)
	if r.repeats {
		n ^= permute.Mix64(uint64(r.Position) + 1)
	}
	return transforms.NewRand(r.Seed, uint64(r.Epoch), n)
}
