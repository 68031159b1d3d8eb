package store

import (
	"bytes"
	"compress/zlib"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// The marks of deleted records are read as they were written, and those that cannot be true are refused.
func TestDeletedOfAManifest(t *testing.T) {
	const records = 100
	words := []uint64{1<<3 | 1<<50, 1 << 35}
	d := NewDeleted(words, records)
	if got, err := d.Words(records); err != nil || !reflect.DeepEqual(got, words) || d.Records != 3 {
		t.Fatalf("%x: %v", got, err)
	}
	more, err := d.Extended(records, 300)
	require.NoError(t, err)
	if got, err := more.Words(300); err != nil || !reflect.DeepEqual(got, append(words, 0, 0, 0)) {
		t.Fatalf("%x: %v", got, err)
	}
	m := Manifest{Records: records, Deleted: d, Splits: []Split{{"a", [][2]int64{{0, 3}, {4, 40}}}, {"b", [][2]int64{{3, 4}, {40, 100}}}}}
	want := []Split{{"a", [][2]int64{{0, 3}, {3, 39}}}, {"b", [][2]int64{{39, 97}}}}
	if got, err := m.LiveSplits(); err != nil || !reflect.DeepEqual(got, want) || m.Live() != 97 {
		t.Errorf("%v, want %v: %v", got, want, err)
	}
	for _, bad := range []*Deleted{
		{Records: 2, Bits: d.Bits}, {Records: 3, Bits: d.Bits[:5]}, {Records: 3}, {Records: 3, Bits: more.Bits}, {Records: 100, Bits: d.Bits},
	} {
		_, err := bad.Words(records)
		if err := errors.Join(bad.check(records), err); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	a, _ := d.ID("x", records)
	b, _ := NewDeleted([]uint64{1, 0}, records).ID("x", records)
	if none, _ := (*Deleted)(nil).ID("x", records); a == b || len(a) != 32 || none != "x" {
		t.Errorf("ids %s, %s and %s", a, b, none)
	}
}

// A manifest of 128 kB may name 2^30 deleted records, which take 128 MB: none is looked at before the files are.
func TestDeletedOfMissingRecords(t *testing.T) {
	const records = 1 << 30
	var bits bytes.Buffer
	z := zlib.NewWriter(&bits)
	for zeros := make([]byte, 1<<20); bits.Len() < 1<<17; {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, z.Close())
	file := func(name string) File { return File{Field: "x", Name: name, Bytes: layout.HeaderBytes + 1<<20} }
	m := &Manifest{Format: "penstock", Version: 4, Generation: 1, ID: strings.Repeat("0", 32), Records: records,
		Fields: []Field{NewField("x", tensor.Uint8)}, Deleted: &Deleted{Records: 1, Bits: bits.Bytes()},
		Shards: []Shard{{Count: records, Files: []File{file("x-00000.npy"), file("x-00000.crc.npy")}}}}
	m.Shards[0].Files[0].Bytes += records - 1<<20
	text, err := m.Encode()
	require.NoError(t, err)
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "manifest.json"), text, 0o666))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = OpenFlat(path)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrCorrupt) || n > 64<<20 {
		t.Errorf("%d bytes of memory: %v", n, err)
	}
}
