// Package digest has the checksums and statistics of records that are being written to a dataset. Package store
// computes them, and the writers enter them into the manifest; users of store do not see them.
//
// Workers do the expensive part: each fills a [Block] with the values of some records and calls its Summarize, which
// computes CRC32C and moments. One goroutine then appends the blocks in the order of the records, and only merges. So
// the manifest's numbers depend on the order of records and not on how many workers there were. A [Record] offers the
// same to writers that append records one by one.
package digest

import (
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// Value is the share of one field's value in the statistics and the identity of a dataset.
type Value struct {
	CRC32C   uint32            // of its bytes
	Channels []moments.Moments // one, or one a channel of an image
}

// Record is the part of *store.Record that only packages of this module use.
type Record interface {
	// Take returns the digests of all values, by field. If Summarize was not called since the last Take,
	// Take computes the digests. They are valid until the next Summarize. Take panics if the record was not
	// made for these fields, or if a value does not have the length of its field.
	Take(fields []tensor.Spec) []Value

	// Summarize computes the digest of one value again, after the record's Summarize, because the value has changed.
	Summarize(field int, spec tensor.Spec)

	// Value returns the digest that Summarize has computed of a value.
	Value(field int) Value

	// Rows returns how many rows the value of a field has.
	Rows(field int, spec tensor.Spec) int

	// SetStored stands for a value that the dataset has already, of which only the checksum of its bytes and the
	// number of its rows are known. Values has no bytes of it, and the record's statistics leave it out.
	SetStored(field int, crc uint32, rows int64)
}

// Of returns the digests of a *store.Record to the packages of this module. Package store, which imports this
// package, sets it: as a method it would show users types that they cannot name.
var Of func(record any) Record
