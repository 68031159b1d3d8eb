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

	// Checkpoint makes everything that was appended durable and stores a note, in JSON, from which the
	// caller can continue after it. It costs an fsync of each open file. In a build without a Journal
	// it does nothing.
	Checkpoint(note json.RawMessage) error

	// Kept describes the records kept from the build that is resumed. The caller appends those that
	// follow.
	Kept() Kept

	// Close discards what was not committed. It removes the files, unless the build has a Journal: then it can be
	// resumed from its last Checkpoint. After Commit, Close does nothing. It is safe to call twice.
	Close() error
}

// Info is the part of a manifest that does not describe the records themselves.
type Info struct {
	Recipe  *Recipe
	Source  *SourceInfo
	Skipped []Skipped

	// NormalizeByStatistics gives every uint8 field of pixels (with a layout, or of two axes or more) the
	// normalization that its own statistics ask for, for the reader to apply.
	NormalizeByStatistics bool

	// NormalizeSplit is the split whose statistics these are; "" stands for the statistics of all records.
	NormalizeSplit string
}

// Journal makes a build survive its process: whatever happens to it, the records up to the last
// Checkpoint are kept, and a build with the same options continues after them. The dataset that it
// ends with has the bytes of a build that was never interrupted.
type Journal struct {
	// Inputs describes all that the records depend on and the Writer does not know: the source, the
	// recipe, the version of the program. A build that began with other inputs is not resumed.
	Inputs map[string]string

	// Resume continues an existing build. Without it, or if there is none, the build starts over.
	Resume bool
}

// Kept describes a resumed build at its last checkpoint.
type Kept struct {
	Resumed bool              // there was a build to continue
	Records int64             // appended by it; the caller continues after them
	Notes   []json.RawMessage // of all its checkpoints, in order
}
