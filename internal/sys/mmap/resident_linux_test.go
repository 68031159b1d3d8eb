package mmap

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestResident(t *testing.T) {
	page := os.Getpagesize()
	path := write(t, "a", fill(100*page, 1))
	m, err := File("", path)
	require.NoError(t, err)
	defer m.Unmap()
	if err := Populate(m.Bytes()); err != nil {
		t.Skipf("this kernel does not populate: %v", err)
	}
	for _, r := range [][3]int{{0, 100 * page, 100}, {page - 1, page + 1, 2}, {3 * page, 4 * page, 1}, {5, 5, 0}, {7, 70*page + 1, 71}} {
		in, pages, err := Resident(m.Bytes()[r[0]:r[1]])
		if err != nil || pages != r[2] || in != pages {
			t.Errorf("bytes %d to %d: %d of %d pages, want %d; error %v", r[0], r[1], in, pages, r[2], err)
		}
	}
	if err := m.Unmap(); err != nil { // mapped pages stay
		t.Fatal(err)
	}
	switch in := evict(t, path); in {
	case 0:
	case 100:
		t.Skip("this file system keeps files in memory")
	default:
		t.Errorf("%d pages after eviction", in)
	}
}

// Residency is known for files of the same user, also if they are read-only, and not for files
// that do not exist.
func TestTells(t *testing.T) {
	path := write(t, "a", fill(10, 1))
	require.NoError(t, os.Chmod(path, 0o444))
	if !ReportsResident(path) {
		t.Error("no report of a file of one's own")
	}
	if ReportsResident(path + "b") {
		t.Error("reported a file that does not exist")
	}
}

// evict has the kernel forget a file's pages, and returns how many it has still. It keeps those
// that somebody, such as the kernel itself, is looking at just then, so that it is asked again.
func evict(t *testing.T, path string) (in int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for range 1000 {
		require.NoError(t, errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)))
		m, err := File("", path)
		require.NoError(t, err)
		in, _, err = Resident(m.Bytes())
		require.NoError(t, errors.Join(err, m.Unmap()))
		if in == 0 {
			break
		}
	}
	return in
}
