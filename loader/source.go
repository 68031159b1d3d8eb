package loader

import (
	"context"

	"github.com/penstock/penstock/tensor"
)

// Source is a dataset as the loader reads it: Len records, each with one value per field,
// found by number. *mmapds.Dataset is one. Every method may be called by several
// goroutines at once.
type Source interface {
	// Len returns the number of records. It never changes.
	Len() int

	// Specs returns the fields, always in the same order.
	Specs() []tensor.Spec

	// Run returns records [a, b) of a field as one view, without copying where it can.
	// The bytes stay valid for as long as the caller holds a Retain.
	Run(field string, a, b int) (tensor.View, error)

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

// raggedSource is what a Source implements that has fields of variable length: those whose
// Spec is Ragged. Offsets have one element more than there are records, are in rows, and
// start with 0.
type raggedSource interface {
	// RunRagged is Run: the rows of records [a, b), and their offsets.
	RunRagged(field string, a, b int, offsets []int64) (tensor.View, error)

	// Lengths sets the offsets that GatherRagged will, and reads no rows.
	Lengths(ctx context.Context, field string, indices []int, offsets []int64) error

	// GatherRagged is Gather: it writes to the start of dst, and returns it, cut or grown to
	// the length of all rows.
	GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error)
}

// contiguity is what a Source implements if records [a, b) are not always one piece of
// its memory, so that Run would have to copy them. Where Contiguous is false the loader
// gathers into its own buffers instead, and counts the bytes as copied.
type contiguity interface {
	Contiguous(field string, a, b int) bool
}

// warmer is what a Source implements if Run gives memory that may have to be read from
// storage when it is touched. Warm reads records [a, b), waiting in a system call, and
// returns an error if it cannot. The loader calls it before it hands out a view, so that
// the consumer finds the bytes in memory: a page fault there would stop a processor of the
// scheduler, and crash the program if the file has been truncated.
type warmer interface {
	Warm(field string, a, b int) error
}

// warmth is what a Source implements that can tell, without a system call, that Run of records
// [a, b) takes next to no time: it is a view of memory that is there. A loop makes batches of
// nothing but such views by itself.
type warmth interface {
	IsWarm(field string, a, b int) bool
}

// FaultSource is what a Source implements that returns mapped memory. Fault returns why a read
// at addr failed, if addr lies in memory of the Source, and nil for every other address. Its
// error should name the record (a method Record() int) and the file. The loader asks when a read
// faults because a file was truncated, or its disk failed.
type FaultSource interface {
	Fault(addr uintptr) error
}

// recordError is what an error of a Source implements if its text names the record that
// failed.
type recordError interface {
	error
	Record() int
}

// sourceID returns the identity of a Source that has one: what State compares, so that no
// position in one dataset is taken for one in another. *mmapds.Dataset is such a Source.
func sourceID(src Source) string {
	if s, ok := src.(identified); ok {
		return s.ID()
	}
	return ""
}
