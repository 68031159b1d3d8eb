package mmap

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o666))
	return path
}

func fill(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) + seed
	}
	return b
}

func TestFile(t *testing.T) {
	want := fill(10000, 3)
	m, err := File("", write(t, "a", want))
	require.NoError(t, err)
	if !bytes.Equal(m.Bytes(), want) {
		t.Error("mapped bytes differ from the file's")
	}
	require.NoError(t, m.Unmap())
	if err := m.Unmap(); err != nil {
		t.Errorf("second Unmap: %v", err)
	}
	if _, err := File("", filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestStitch(t *testing.T) {
	page := os.Getpagesize()
	a, b, c := fill(3*page, 1), fill(2*page, 2), fill(page+123, 3)
	parts := []Part{
		{"", write(t, "a", a), int64(page), int64(2 * page)},
		{"", write(t, "b", b), 0, int64(2 * page)},
		{"", write(t, "c", c), 0, int64(len(c))},
	}
	m, err := Stitch(parts)
	if runtime.GOOS != "linux" {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
		return
	}
	require.NoError(t, err)
	want := append(append(append([]byte{}, a[page:]...), b...), c...)
	if !bytes.Equal(m.Bytes(), want) {
		t.Error("stitched bytes differ from the parts'")
	}
	WillNeed(m.Bytes())
	if err := Populate(m.Bytes()[5 : page+7]); err != nil && !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	require.NoError(t, m.Unmap())
}

func TestStitchRefusesPartialPages(t *testing.T) {
	if _, err := Stitch([]Part{{"", write(t, "a", fill(100, 0)), 0, 100}, {"", write(t, "b", fill(100, 0)), 0, 100}}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if _, err := Stitch(nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no parts: got %v", err)
	}
}

func TestPopulateOfTruncatedFile(t *testing.T) {
	path := write(t, "a", fill(1<<20, 0))
	m, err := File("", path)
	require.NoError(t, err)
	defer m.Unmap()
	if err := Populate(m.Bytes()); errors.Is(err, ErrUnsupported) {
		t.Skip("this system cannot populate a mapping")
	}
	require.NoError(t, os.Truncate(path, 4096))
	if err := Populate(m.Bytes()[1<<19:]); err == nil {
		t.Error("no error from populating past the end of the file")
	}
}

// A dataset may have more files than a process may have descriptors; a file that was truncated
// is known as such, and one that was replaced is not taken for the mapped one.
func TestLost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("files are mapped side by side, and can be truncated, on Linux only")
	}
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(all)
	}
	page := os.Getpagesize()
	before := open()
	var parts []Part
	for i := range 50 {
		parts = append(parts, Part{"", write(t, strconv.Itoa(i), fill(page, byte(i))), 0, int64(page)})
	}
	m, err := Stitch(parts)
	require.NoError(t, err)
	defer m.Unmap()
	if now := open(); now != before {
		t.Errorf("%d descriptors are open, %d before", now, before)
	}
	if at, lost := m.Lost(0, 50*page); lost {
		t.Errorf("byte %d of whole files is lost", at)
	}
	require.NoError(t, os.Truncate(parts[7].Path, 100))
	for _, c := range []struct {
		from, end, at int
		lost          bool
	}{
		{0, 50 * page, 7*page + 100, true}, {7*page + 200, 8 * page, 7*page + 200, true}, {7 * page, 7*page + 101, 7*page + 100, true},
		{0, 7*page + 100, 0, false}, {8 * page, 50 * page, 0, false},
	} {
		if at, lost := m.Lost(c.from, c.end); at != c.at || lost != c.lost {
			t.Errorf("[%d, %d): %d, %v, want %d, %v", c.from, c.end, at, lost, c.at, c.lost)
		}
	}
	require.NoError(t, os.Rename(parts[8].Path, parts[7].Path))
	require.NoError(t, os.Truncate(parts[7].Path, 50))
	if at, lost := m.Lost(7*page, 8*page); lost {
		t.Errorf("a file that was replaced is taken for truncated at %d", at)
	}
}
