package mmap

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestPlaceOf(t *testing.T) {
	page := os.Getpagesize()
	a, b := fill(3*page, 1), fill(2*page, 2)
	paths := []string{write(t, "a", a), write(t, "b", b)}
	parts := []Part{{"", paths[0], int64(page), int64(2 * page)}, {"", paths[1], 0, int64(len(b))}}
	stitched, err := Stitch(parts)
	if runtime.GOOS != "linux" {
		t.Skip("files are mapped side by side on Linux alone")
	}
	require.NoError(t, err)
	whole, err := File("", paths[0])
	require.NoError(t, err)
	at := func(b []byte, want []byte, is bool) Place {
		t.Helper()
		p, ok := PlaceOf(b)
		if ok != is {
			t.Fatalf("PlaceOf reports %v; want %v", ok, is)
		}
		if !is {
			return p
		}
		f, err := p.Open()
		require.NoError(t, err)
		defer f.Close()
		got := make([]byte, p.Bytes)
		if _, err := io.ReadFull(io.NewSectionReader(f, p.Offset, p.Bytes), got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("other bytes at %d of %s, %v", p.Offset, p.Path(), err)
		}
		return p
	}
	data := stitched.Bytes()
	at(data[:10], nil, false)
	stitched.Publish()
	whole.Publish()
	first := at(data[5:2*page], a[page+5:], true)
	second := at(data[2*page:], b, true)
	at(data[2*page-1:2*page+1], nil, false) // in both files
	at(data[:0], nil, false)
	at(make([]byte, 8), nil, false)
	same := at(data[7:8], a[page+7:page+8], true)
	other := at(whole.Bytes(), a, true)
	if !first.SameFile(same) || first.SameFile(second) || first.SameFile(other) {
		t.Error("places in one file of one Mapping, and no others, are in the same file")
	}
	require.NoError(t, os.Rename(paths[1], paths[0]))
	if f, err := first.Open(); err == nil {
		f.Close()
		t.Error("another file at the path is opened")
	}
	require.NoError(t, stitched.Unmap())
	at(data[:10:10], nil, false)
	if _, is := PlaceOf(whole.Bytes()); !is {
		t.Error("Unmap of another Mapping withdrew this one")
	}
	require.NoError(t, whole.Unmap())
}
