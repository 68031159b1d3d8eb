package mirror

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/remote"
)

// Options configures Open. The zero value of every field is usable.
type Options struct {
	// Fields opens only the named fields, in this order, and fetches no other fields; nil means all fields.
	Fields []string

	// Split opens only the records of this split, numbered from 0; empty means all records.
	Split string

	// Deleted opens deleted records, too: see mmapds.WithDeleted.
	Deleted bool

	// CacheDir is the folder of all mirrors; empty means penstock in the user's cache folder
	// (os.UserCacheDir). It is created if it does not exist, and nobody else may write to it.
	CacheDir string

	// CacheBytes limits the disk space of all mirrors in CacheDir together; 0 means 90 % of the
	// space that is free on the disk or taken by mirrors.
	CacheBytes int64

	// Policy says how faults of the store are treated.
	Policy remote.Policy

	requestBytes int64 // the largest request, for records that are smaller; 0 means defaultRequestBytes
	memoryBytes  int64 // for blocks that find no room on disk; 0 means defaultMemoryBytes
}

// maxInFlight is the most concurrent requests. The limiter finds out up to which number more
// requests make the transfer faster.
const maxInFlight = 128

// Defaults of options that only tests set: with less, a small dataset needs several requests and
// does not fit into memory.
const (
	defaultRequestBytes = 4 << 20
	defaultMemoryBytes  = 256 << 20
)

// resolve checks the options and fills in defaults. The default folder is the user's cache, ~/.cache/penstock on Linux.
func (o Options) resolve() (Options, error) {
	errs := []error{o.Policy.Validate()}
	if o.CacheBytes < 0 {
		errs = append(errs, errors.New("options: CacheBytes is negative"))
	}
	if o.CacheDir == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			errs = append(errs, fmt.Errorf("options: CacheDir: %w; name a folder", err))
		}
		o.CacheDir = filepath.Join(home, "penstock")
	}
	if o.requestBytes == 0 {
		o.requestBytes = defaultRequestBytes
	}
	if o.memoryBytes == 0 {
		o.memoryBytes = defaultMemoryBytes
	}
	return o, errors.Join(errs...)
}
