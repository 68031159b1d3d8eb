package store

import "encoding/json"

// Writer makes a dataset out of records. It serves one goroutine at a time.
//
// Nothing is found under the destination's name before Commit returns nil, and everything
// is found there afterwards, also after a power cut.
type Writer interface {
	// Append adds the next record. The Record is the caller's again when it returns. After
	// an error the Writer can only be closed.
	Append(r *Record) error

	// Commit makes the dataset durable and publishes it. At least one record must have been
	// appended.
	Commit(info Info) (*Manifest, error)

	// Checkpoint makes everything that was appended durable and keeps a note, in JSON, of
	// what the caller needs to go on behind it. It costs an fsync of each open file. In a
	// build without a Journal it does nothing.
	Checkpoint(note json.RawMessage) error

	// Kept says what there was of a build that is resumed. The caller appends what comes
	// behind those records.
	Kept() Kept

	// Close gives up what was not committed. It removes the files, but not those of a build
	// with a Journal, which can be resumed from its last Checkpoint. After Commit it does
	// nothing. It is safe to call twice.
	Close() error
}

// Info is what a manifest says beside the records themselves.
type Info struct {
	Recipe  *Recipe
	Source  *SourceInfo
	Skipped []Skipped

	// NormalizeByStatistics gives every uint8 field of pixels, see PixelBytes, the
	// normalisation that its own statistics ask for, for the reader to apply.
	NormalizeByStatistics bool

	// NormalizeSplit is the split whose statistics these are; "" stands for those of all records.
	NormalizeSplit string
}
