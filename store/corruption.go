package store

import (
	"fmt"
	"path/filepath"
)

// CorruptionError describes a run of records whose bytes are not what was written, or a file that cannot be read.
type CorruptionError struct {
	Field       string // empty for a fault of the manifest
	Array       string // "tokens.offsets"; the field's name where its records have one length
	Shard       int    // number of the extent; 0 in an HDF5 file
	Path        string // of the file
	Offset      int64  // of the first byte that may be wrong
	First, Last int64  // records that one checksum covers, both included
	Err         error
	Asked       int64 // the record that the caller read, if it read one
}

// Record returns the record that the caller read, if the checksum covers it, and otherwise the first record that it
// covers.
func (e *CorruptionError) Record() int { return int(max(e.Asked, e.First)) }

// Error names everything that is known.
func (e *CorruptionError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %v", filepath.Base(e.Path), e.Err)
	}
	records := fmt.Sprintf("records %d to %d", e.First, e.Last)
	if e.First == e.Last {
		records = fmt.Sprintf("record %d", e.First)
	}
	return fmt.Sprintf("%s: field %q: shard %d: %s: byte %#x on: %v", filepath.Base(e.Path), e.Field, e.Shard, records,
		e.Offset, e.Err)
}

// Unwrap returns the cause; for wrong bytes it is ErrCorrupt.
func (e *CorruptionError) Unwrap() error { return e.Err }
