package preprocess

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess/part"
	"github.com/penstock/penstock/internal/sys/usage"
)

// checkSpace notes how much of the disk writing takes at least, and refuses to begin what cannot end. Sources can promise
// any number of records with a few bytes.
func (r *run) checkSpace(j *job) error {
	r.need = product(max(0, r.info.Count-r.skip), int64(j.schema.RecordBytes()))
	r.room = r.least()
	if r.config.Resume { // some of it is on the disk already
		return nil
	}
	return r.hasSpace(r.room)
}

// checkSpaceBehind is checkSpace for a run that goes on behind the records that it has found. An HDF5 file has its space.
func (r *run) checkSpaceBehind(j *job, kept int64) error {
	if !r.config.Resume || r.config.format() == part.HDF5 {
		return nil
	}
	return r.hasSpace(r.room - product(kept, int64(j.schema.RecordBytes())))
}

// least returns the bytes that are on the disk at once at least. Records of Zarr are collected before they are copied, and so
// are those that an HDF5 file gets, which is a copy of the one that they are added to.
func (r *run) least() int64 {
	c := r.config
	switch {
	case c.format() == part.Zarr && c.Compress.method() == "" && r.base == nil:
		return product(r.need, 2)
	case c.format() == part.HDF5 && r.base != nil:
		if info, err := os.Stat(c.Dest); err == nil {
			return sum(info.Size(), product(r.need, 2))
		}
	}
	return r.need
}

// hasSpace refuses what is larger than the free space. Samples that are left out take none, and shards that are sent to a
// bucket or taken over do not stay.
func (r *run) hasSpace(room int64) error {
	c := r.config
	if c.Skip || c.Dedup || c.uploader != nil || r.task.adopt != nil {
		return nil
	}
	if free, known := usage.FreeSpace(folderOf(c.Dest)); known && room > free {
		return syscall.ENOSPC
	}
	return nil
}

// folderOf returns the folder that a path will be in, or the one above it that exists.
func folderOf(path string) string {
	for {
		folder := filepath.Dir(path)
		if _, err := os.Stat(folder); err == nil || folder == path {
			return folder
		}
		path = folder
	}
}

// product returns a*b, or the largest number.
func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// sum returns a+b, or the largest number.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// explainSpace turns an error that comes of a full disk, or of a quota, into one that says
// how much is needed and how much there is, now that what was written is removed. need is what
// is known beforehand: nothing of records that have lengths of their own.
func explainSpace(err error, dest string, need int64) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || errno != syscall.ENOSPC && errno != syscall.EDQUOT {
		return err
	}
	text := "at least " + cli.Bytes(need)
	folder := folderOf(dest)
	switch free, ok := usage.FreeSpace(folder); {
	case ok && (free > need || need == 0): // 0 is not known
		text = fmt.Sprintf("more than the %s that %s has free", cli.Bytes(free), folder)
	case ok:
		text += fmt.Sprintf(", and %s has %s free", folder, cli.Bytes(free))
	}
	return fmt.Errorf("cannot write %s: %w: writing it needs %s", dest, errno, text)
}
