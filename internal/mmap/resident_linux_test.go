package mmap

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestResident(t *testing.T) {
	page := os.Getpagesize()
	path := write(t, "a", fill(100*page, 1))
	m, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
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
	evict(t, path)
	m, err = File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	in, _, err := Resident(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if in == 100 {
		t.Skip("this file system keeps files in memory")
	}
	if in != 0 {
		t.Errorf("%d pages after eviction", in)
	}
}

// What is in memory is told of one's own files, also if they are read-only, and of none that do
// not exist.
func TestTells(t *testing.T) {
	path := write(t, "a", fill(10, 1))
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if !Tells(path) {
		t.Error("not told of a file of one's own")
	}
	if Tells(path + "b") {
		t.Error("told of a file that does not exist")
	}
}

// evict has the kernel forget a file's pages.
func evict(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}
