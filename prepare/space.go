package prepare

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/store"
)

// space is the disk space that a run needs.
type space struct {
	need   int64  // bytes of the records, once that is known
	room   int64  // the least that writing them takes
	record int64  // bytes of one
	folder string // "" if the room is not known
}

// setSpace computes the space that the records need. The room is not checked if samples may be left out, which take
// none, or if shards are sent to a bucket or taken over from parts.
func (r *run) setSpace(schema store.Schema) {
	s := space{record: int64(schema.RecordBytes())}
	s.need = product(max(0, r.info.Count-r.skip), s.record)
	s.room = s.need
	switch {
	// collected before they are copied
	case r.DatasetFormat() == part.Zarr && r.Compress.Method == Uncompressed && r.base == nil:
		s.room = product(s.need, 2)
	case r.DatasetFormat() == part.HDF5 && r.base != nil: // a copy of the file that they are added to, too
		if info, err := os.Stat(r.Dest); err == nil {
			s.room = sum(info.Size(), product(s.need, 2))
		}
	}
	if !r.Skip && !r.Dedup && r.uploader == nil && r.task.adopt == nil {
		s.folder = folderOf(r.Dest)
	}
	r.space = s
}

// check refuses a run that cannot fit on the disk. A hostile source can promise any number of records with a few bytes,
// and an honest one would fill the disk for hours before it fails. The kept records are on the disk already.
func (s space) check(kept int64) error {
	if s.folder == "" {
		return nil
	}
	if free, known := usage.FreeSpace(s.folder); known && s.room-product(kept, s.record) > free {
		return syscall.ENOSPC
	}
	return nil
}

// folderOf returns the folder that a path will be in, or the nearest one above that exists: free space is known only of
// folders that exist.
func folderOf(path string) string {
	for {
		folder := filepath.Dir(path)
		if _, err := os.Stat(folder); err == nil || folder == path {
			return folder
		}
		path = folder
	}
}

// product returns a*b, or the largest number if that overflows.
func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// sum returns a+b, or the largest number if that overflows.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// explainSpace turns an error caused by a full disk, or by a quota, into one that says
// how much space is needed and how much is free after the cleanup. need is the part that
// is known beforehand, which leaves out records of variable length.
func explainSpace(err error, dest string, need int64) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || errno != syscall.ENOSPC && errno != syscall.EDQUOT {
		return err
	}
	text := "at least " + units.Bytes(need)
	folder := folderOf(dest)
	switch free, ok := usage.FreeSpace(folder); {
	case ok && (free > need || need == 0): // 0 is not known
		text = fmt.Sprintf("more than the %s that %s has free", units.Bytes(free), folder)
	case ok:
		text += fmt.Sprintf(", and %s has %s free", folder, units.Bytes(free))
	}
	return fmt.Errorf("cannot write %s: %w: writing it needs %s", dest, errno, text)
}
