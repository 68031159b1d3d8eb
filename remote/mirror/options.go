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

	// InFlight is the most requests at a time; 0 means 128. How many there are is found out by
	// what makes the link faster.
	InFlight int

	// RequestBytes is the largest size of one request, where records are smaller; 0 means
	// 4 MiB.
	RequestBytes int

	// MemoryBytes is how much of what finds no room on disk is held in memory; 0 means 256 MiB.
	MemoryBytes int64

	// Policy is how faults of the store are treated.
	Policy remote.Policy
}

const (
	defaultInFlight     = 128
	defaultRequestBytes = 4 << 20
	defaultMemoryBytes  = 256 << 20
)

func (o Options) resolve() (Options, error) {
	errs := []error{o.Policy.Validate()}
	for _, f := range []struct {
		name  string
		value int64
	}{{"CacheBytes", o.CacheBytes}, {"InFlight", int64(o.InFlight)}, {"RequestBytes", int64(o.RequestBytes)},
		{"MemoryBytes", o.MemoryBytes}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("options: %s is negative", f.name))
		}
	}
	if o.CacheDir == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			errs = append(errs, fmt.Errorf("options: CacheDir: %w; name a folder", err))
		}
		o.CacheDir = filepath.Join(home, "penstock")
	}
	if o.InFlight == 0 {
		o.InFlight = defaultInFlight
	}
	if o.RequestBytes == 0 {
		o.RequestBytes = defaultRequestBytes
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemoryBytes
	}
	return o, errors.Join(errs...)
}
