package mmapds

import (
	"sync"

	"github.com/penstock/penstock/internal/sys/usage"
)

// Option configures Open.
type Option func(*config)

// config holds the values of the options.
type config struct {
	fields     []string
	split      string
	generation int
	deleted    bool
	verify     verification
	read       readMode
	pager      Pager
	memory     int64 // bytes that this process may use; 0 if that is not known
	mostMapped int   // files
}

// WithFields opens only the named fields, in this order; no names mean all fields. In an HDF5 file
// that penstock did not write, a field's name is the dataset's path, such as "train/images".
func WithFields(names ...string) Option { return func(c *config) { c.fields = names } }

// WithSplit opens only the records of a split, numbered from 0; "" means all records.
func WithSplit(name string) Option { return func(c *config) { c.split = name } }

// WithGeneration opens generation n of a dataset in a folder; 0 is the newest generation. A path
// such as "ds@3" does the same.
func WithGeneration(n int) Option { return func(c *config) { c.generation = n } }

// WithDeleted opens the records that were deleted, too: all that are stored, each with the number of its place.
func WithDeleted() Option { return func(c *config) { c.deleted = true } }

// WithVerify has records compared with their checksums before they are handed out: see Verified reads
// in the package's documentation.
func WithVerify(mode VerifyMode) Option {
	return func(c *config) { c.verify = verification{mode: mode} }
}

// WithVerifySample compares that fraction of the blocks, 0 to 1, chosen at random whenever one is asked
// for.
func WithVerifySample(fraction float64) Option {
	return func(c *config) { c.verify = verification{verifySample, fraction} }
}

// WithPager makes p fetch what is not in the files yet.
func WithPager(p Pager) Option { return func(c *config) { c.pager = p } }

// processMemory returns the memory that this process may use. It is determined once, because that
// reads about 20 files.
var processMemory = sync.OnceValue(usage.Memory)

// newConfig applies the options, and checks what needs no dataset for it.
func newConfig(opts []Option) (*config, error) {
	c := &config{memory: processMemory(), mostMapped: mostMapped}
	for _, o := range opts {
		o(c)
	}
	return c, c.verify.validate()
}

// exceeds reports whether a dataset of size bytes is read past the page cache. The cache would hold
// less than half of such a dataset, and reading it would evict everything else.
func (c *config) exceeds(size int64) bool { return c.pager == nil && c.memory > 0 && size > 2*c.memory }

// isScarce reports whether pages of a column will not stay in memory: the dataset does not fit, and
// the column is a considerable part of it. Labels and offsets stay even of a very large dataset.
func (c *config) isScarce(size, column int64) bool {
	return c.memory > 0 && size > c.memory && column > c.memory/8
}
