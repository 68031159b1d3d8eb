//go:build cgo && linux

package hdf5

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// smallDisk mounts a file system of that many bytes, which only root can.
func smallDisk(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+bytes); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

var infoForTest = store.Info{}

func TestLib(t *testing.T) {
	dir := smallDisk(t, "64k")
	for range 3 {
		p := filepath.Join(dir, "a.h5")
		err := session(p, true, 8, func(f file) error {
			if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 64<<10), 0o666); err != nil {
				t.Log(err)
			}
			for i := range 40 {
				d := dataset{path: "/x" + string(rune('A'+i)), elem: element{dtype: tensor.Uint8}, dims: []int64{1 << 20}}
				if err := d.create(f, nil); err != nil {
					t.Log(i, err)
				}
			}
			err := f.flush()
			t.Log(err)
			return nil
		})
		t.Log(err, errors.Is(err, unix.ENOSPC))
		fds, _ := os.ReadDir("/proc/self/fd")
		t.Log(len(fds))
		for _, e := range fds {
			l, _ := os.Readlink("/proc/self/fd/" + e.Name())
			t.Log(e.Name(), l)
		}
		os.Remove(p)
		os.Remove(filepath.Join(dir, "fill"))
	}
	b := build(t, imageSchema(9, 7), 50, 50, infoForTest)
	t.Log(b)
}
