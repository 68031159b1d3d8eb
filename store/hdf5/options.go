package hdf5

// Options configures Create.
type Options struct {
	Records   int64 // how many records will be appended at most; must be > 0
	Overwrite bool  // replace a file or a flat dataset that is there
}
