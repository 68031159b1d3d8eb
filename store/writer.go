package store

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

	// Close gives up what was not committed and removes its files. After Commit it does
	// nothing. It is safe to call twice.
	Close() error
}

// Info is what a manifest says beside the records themselves.
type Info struct {
	Recipe  *Recipe
	Source  *SourceInfo
	Skipped []Skipped

	// NormalizeByStatistics gives every uint8 field with a Layout the normalisation that its
	// own statistics ask for, for the reader to apply.
	NormalizeByStatistics bool
}
