package mmap

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
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
	m, err := File(write(t, "a", want))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Bytes(), want) {
		t.Error("mapped bytes differ from the file's")
	}
	if err := m.Unmap(); err != nil {
		t.Error(err)
	}
	if err := m.Unmap(); err != nil {
		t.Errorf("second Unmap: %v", err)
	}
	if _, err := File(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestStitch(t *testing.T) {
	page := os.Getpagesize()
	a, b, c := fill(3*page, 1), fill(2*page, 2), fill(page+123, 3)
	parts := []Part{
		{write(t, "a", a), int64(page), int64(2 * page)},
		{write(t, "b", b), 0, int64(2 * page)},
		{write(t, "c", c), 0, int64(len(c))},
	}
	m, err := Stitch(parts)
	if runtime.GOOS != "linux" {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := append(append(append([]byte{}, a[page:]...), b...), c...)
	if !bytes.Equal(m.Bytes(), want) {
		t.Error("stitched bytes differ from the parts'")
	}
	WillNeed(m.Bytes())
	if err := Populate(m.Bytes()[5 : page+7]); err != nil && !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if err := m.Unmap(); err != nil {
		t.Error(err)
	}
}

func TestStitchRefusesPartialPages(t *testing.T) {
	if _, err := Stitch([]Part{{write(t, "a", fill(100, 0)), 0, 100}, {write(t, "b", fill(100, 0)), 0, 100}}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if _, err := Stitch(nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no parts: got %v", err)
	}
}

func TestPopulateOfTruncatedFile(t *testing.T) {
	path := write(t, "a", fill(1<<20, 0))
	m, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if err := Populate(m.Bytes()); errors.Is(err, ErrUnsupported) {
		t.Skip("this system cannot populate a mapping")
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if err := Populate(m.Bytes()[1<<19:]); err == nil {
		t.Error("no error from populating past the end of the file")
	}
}
