package hdf5

import "github.com/penstock/penstock/store"

// Options configures Create.
type Options struct {
	// Records is how many records will be appended at most; 0 if that is not known.
	Records int64

	Overwrite bool           // replace a file or a flat dataset that is there
	Append    bool           // add to the file that is there, which must have this schema
	Splits    []string       // names of the splits; each Record names one
	Journal   *store.Journal // nil: a build that does not come to Commit leaves nothing
}
