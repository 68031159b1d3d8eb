package prepare

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
)

func TestDiskFull(t *testing.T) {
	source := rawtest.Folder(t, 40)
	disk := smalldisk.New(t, "256k")
	dests := []string{"ds"}
	dests = append(dests, "ds.h5", "ds.zarr")
	for _, dest := range dests {
		t.Run(dest, func(t *testing.T) {
			c := config(t, source)
			c.Dest, c.Images.Resize, c.Images.Crop, c.Names = filepath.Join(disk, dest), []int{64, 64}, nil, NamesOff
			_, err := Run(context.Background(), c, &rawtest.Silent{})
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("error %v, want ENOSPC", err)
			}
			need := map[string]string{"ds": "480.3 KiB", "ds.h5": "480.3 KiB", "ds.zarr": "960.6 KiB"}[dest]
			for _, part := range []string{"no space left on device: writing it needs at least " + need + ", and " + disk + " has 256.0 KiB free"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want it to hold %q", err, part)
				}
			}
			rawtest.CheckNothing(t, c.Dest)
		})
	}
}

// A run that found the disk full continues once there is room, and ends with the bytes of one
// that had it from the beginning. An HDF5 file of known size takes its space at the start.
func TestDiskFullThenResumed(t *testing.T) {
	whole := config(t, rawtest.Folder(t, 60))
	whole.Images.Resize, whole.Images.Crop, whole.Names = []int{64, 64}, nil, NamesOff // as an HDF5 file of known size has none
	whole.Skip = true                                                                  // it may need less, so that it begins on a disk that is too small
	mustRun(t, whole)
	for _, name := range []string{"ds", "ds.h5", "ds.zarr"} {
		dir := smalldisk.New(t, "256k")
		c := whole
		c.Dest, c.Resume, c.Checkpoint = filepath.Join(dir, name), true, 1
		_, err := Run(context.Background(), c, &rawtest.Silent{})
		if !errors.Is(err, syscall.ENOSPC) || name == "ds" && !strings.Contains(err.Error(), "--resume continues after them") {
			t.Fatalf("%s: error %v", name, err)
		}
		require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"))
		s := mustRun(t, c)
		if name == "ds" && s.Resumed == 0 || s.ID != rawtest.Manifest(t, whole.Dest).ID {
			t.Errorf("%s: %d records of before, identity %s", name, s.Resumed, s.ID)
		}
		if name == "ds" && !maps.Equal(foldertest.Files(t, c.Dest), foldertest.Files(t, whole.Dest)) {
			t.Error("other bytes than with room from the beginning")
		}
	}
}

// If little is known beforehand, as for records of variable length, the free space
// is less than the run needs.
func TestDiskFullOfUnknownNeed(t *testing.T) {
	dir := t.TempDir()
	for need, want := range map[int64]string{
		0:       `needs more than the [0-9.]+ [KMGT]iB that ` + dir + ` has free$`,
		1 << 60: `needs at least 1.0 EiB, and ` + dir + ` has [0-9.]+ [KMGT]iB free$`,
	} {
		err := explainSpace(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, filepath.Join(dir, "ds"), need)
		if !errors.Is(err, syscall.ENOSPC) || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if err := explainSpace(fs.ErrClosed, dir, 0); err != fs.ErrClosed {
		t.Errorf("error %v", err)
	}
}
