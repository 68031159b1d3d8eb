// Package sampler says in which order records come.
//
// A [Sampler] makes one [Sequence] per epoch. [Sequential], [Shuffle] and [Block] visit every
// record once; [Subset] and [Split] choose some of the records; [Weighted], [WeightedOnce] and [Mix] draw by
// weight; [Bucket] puts records together that are alike, and [Regions] keeps each
// host's reads in one part of the dataset. [ChunkShuffle] visits chunks in random order, so that
// each is decoded once. All of them are pure functions of (seed, epoch, position): they are the
// same for any number of workers and processes, and after any resume. The order is the order of all
// ranks together; package loader/internal/order divides it among them.
package sampler

import (
	"fmt"

	"github.com/penstock/penstock/internal/permute"
)

// Sampler says in which order the records of an epoch come. A program can have its own. It may
// also implement [Identifier], [Validator] and [Repeater].
type Sampler interface {
	// Epoch returns the order of one epoch over a Source of n records. It must be a pure
	// function of its arguments, and should take neither time nor memory that grows with n.
	Epoch(n int, seed uint64, epoch int) Sequence
}

// Sequence is the order of one epoch. Several goroutines use it at once. It may also implement
// [SliceSequence].
type Sequence interface {
	// Len returns the number of positions of the epoch. It can differ from the number of
	// records.
	Len() int

	// Fill sets dst[i] to the number of the record at position pos+i. It is called for any
	// range of [0, Len), in any order and repeatedly, and must not allocate.
	Fill(pos int, dst []int)
}

// SliceSequence is a [Sequence] that knows, without listing them, whether the records at some
// positions are consecutive in the Source. Batches of consecutive records are views without a copy.
type SliceSequence interface {
	Sequence

	// SliceAt returns the record at position pos if the n positions from there hold n
	// consecutive records.
	SliceAt(pos, n int) (first int, ok bool)
}

// BatchedSequence is a [Sequence] that divides its positions into batches itself.
type BatchedSequence interface {
	Sequence

	// Batches returns the batches of the epoch; nil if all batches have the same number of records, in the order
	// of their positions. With whole, batches that are not full are left out.
	Batches(whole bool) Batches
}

// Batches are the batches of an epoch, each a stretch of positions. At each step all ranks together have one batch.
type Batches interface {
	// Len returns the number of batches, the same in every epoch.
	Len() int

	// At returns the first position of the batch at a step, and its length, at most the global batch of the loader.
	At(step int) (pos, n int)

	// Of returns the batch that has a position.
	Of(pos int) (first, n int)
}

// BatchesOf returns the batches of a Sequence; nil if it does not divide its positions itself.
func BatchesOf(s Sequence, whole bool) Batches {
	if b, ok := s.(BatchedSequence); ok {
		return b.Batches(whole)
	}
	return nil
}

// Identifier is a [Sampler] with parameters. A State of the loader holds its ID and not only the
// name of the type, so that Resume refuses other parameters.
type Identifier interface {
	ID() string
}

// Validator is a [Sampler] that does not suit every Source.
type Validator interface {
	// Validate reports what makes the Sampler unusable with a Source of n records.
	Validate(n int) error
}

// Repeater is a [Sampler] whose epochs may have a record more than once. If Repeats is true, the
// random stream of a record depends on its position too.
type Repeater interface {
	Repeats() bool
}

// Repeats reports whether an epoch of s may have a record more than once.
func Repeats(s Sampler) bool {
	r, ok := s.(Repeater)
	return ok && r.Repeats()
}

// Validate returns an error if s cannot serve a Source with n records. The error is nil
// if s is no [Validator].
func Validate(s Sampler, n int) error {
	if v, ok := s.(Validator); ok {
		return v.Validate(n)
	}
	return nil
}

// ID returns the name of s and its parameters: the ID of an [Identifier], and the type's name of any other Sampler. A
// nil s is [Sequential].
func ID(s Sampler) string {
	switch s := s.(type) {
	case nil, Sequential:
		return "sequential"
	case Shuffle:
		return "shuffle"
	case Identifier:
		return s.ID()
	}
	return fmt.Sprintf("%T", s)
}

// Sequential visits the records in the order of the dataset. Its batches are views of the dataset's
// memory.
type Sequential struct{}

// Epoch returns 0, 1, ..., n-1 for every seed and epoch.
func (Sequential) Epoch(n int, _ uint64, _ int) Sequence { return sequential(n) }

type sequential int

var _ SliceSequence = sequential(0)

func (s sequential) Len() int { return int(s) }

func (s sequential) Fill(pos int, dst []int) {
	for i := range dst {
		dst[i] = pos + i
	}
}

func (s sequential) SliceAt(pos, _ int) (first int, ok bool) { return pos, true }

// Shuffle visits every record exactly once, in a random order that differs for every seed and
// epoch: (0, 1) and (1, 0) are not related. It computes each position when it is asked for, so
// that an epoch is set up in some microseconds and at most 8 KiB, whatever the number of records.
type Shuffle struct{}

// Epoch returns the permutation that belongs to (n, seed, epoch). It is the same on every
// machine, and with every version of this package.
func (Shuffle) Epoch(n int, seed uint64, epoch int) Sequence { return permute.New(n, seed, epoch) }
