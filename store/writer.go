package store

import "encoding/json"

// Writer makes a dataset of records. It serves one goroutine at a time.
//
// Before Commit returns nil, nothing exists at the destination's name. Afterwards the whole dataset is there, even
// after a power cut.
type Writer interface {
	// Append adds the next record. The caller may change the Record when Append returns. After an error the Writer can
	// only be closed.
	Append(r *Record) error

	// Commit makes the dataset durable and publishes it. At least one record must have been
	// appended.
	Commit(info Info) (*Manifest, error)

	// Checkpoint makes all appended records durable and stores a note, in JSON, from which the caller
	// can continue after them. It costs an fsync of each open file. In a build without a Journal it
	// does nothing.
	Checkpoint(note json.RawMessage) error

	// Kept describes the records that a resumed build has kept. The caller appends the records that follow them.
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

	// NormalizeSplit is the split whose statistics NormalizeByStatistics uses; "" means all records. Statistics of the
	// training split keep the test records out of training.
	NormalizeSplit string
}

// Journal makes a build survive its process: whatever happens to the process, the records up to the last Checkpoint are
// kept, and a build with the same options continues after them. The resulting dataset has the same bytes as after a
// build that was never interrupted.
type Journal struct {
	// Inputs describes everything that the records depend on and that the Writer does not know: the source, the recipe,
	// the version of the program. A build that began with other inputs is not resumed: half of its records would be
	// made differently.
	Inputs map[string]string

	// Resume continues an existing build. Without Resume, or if no build exists, the build starts over.
	Resume bool
}

// Kept describes a resumed build at its last checkpoint.
type Kept struct {
	Resumed bool              // there was a build to continue
	Records int64             // records that the build appended; the caller continues after them
	Notes   []json.RawMessage // notes of all checkpoints of the build, in order
}
