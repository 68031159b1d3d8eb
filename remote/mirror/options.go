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
	// Fields opens only these, in this order; nil means all. Others are not fetched.
	Fields []string

	// Split opens only the records of that split, numbered from 0; empty means all.
	Split string

	// Deleted opens the records that were deleted, too: see mmapds.WithDeleted.
	Deleted bool

	// CacheDir is the folder of all mirrors; empty means penstock in the user's cache folder
	// (os.UserCacheDir). It is made if it is not there, and nobody else may write to it.
	CacheDir string

	// CacheBytes is how much all mirrors in CacheDir may take together; 0 means 90 % of what is
	// free on the disk, and what the mirrors have.
	CacheBytes int64

	// Policy is how faults of the store are treated.
	Policy remote.Policy

	requestBytes int64 // the largest size of one request, where records are smaller; 0 means defaultRequestBytes
	memoryBytes  int64 // of blocks that find no room on disk and are held in memory; 0 means defaultMemoryBytes
}

// maxInFlight is the most requests at a time. How many there are is found out by what makes the link faster.
const maxInFlight = 128

// Tests set less, so that small datasets need more than one request, and do not fit in memory.
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
