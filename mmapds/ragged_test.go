package mmapds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

func raggedSchema() store.Schema {
	return store.Schema{Fields: []store.Field{
		store.NewRagged("tokens", tensor.Int32), store.NewRagged("boxes", tensor.Float32, 4),
		store.NewRagged("nothing", tensor.Uint8), store.NewField("labels", tensor.Int64),
	}}
}

// raggedRecord makes record i; some have nothing, a few have much.
func raggedRecord(i int) *store.Record {
	r := store.NewRecord(raggedSchema())
	rng := rand.New(rand.NewPCG(uint64(i), 9))
	n := rng.IntN(40) * (i % 5)
	if i%97 == 50 {
		n = 20000
	}
	for range n {
		r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], rng.Uint32N(50000))
	}
	r.Values[1] = append(r.Values[1], make([]byte, 16*(i%3))...)
	for k := range r.Values[1] {
		r.Values[1][k] = byte(i % 60)
	}
	binary.LittleEndian.PutUint64(r.Values[3], uint64(i))
	return r
}

// buildRagged writes n records in shards of 512.
func buildRagged(t testing.TB, n int) string {
	t.Helper()
	return write(t, raggedSchema(), inShards, n, raggedRecord)
}

// wantRagged returns the rows of records, and the offsets in rows.
func wantRagged(field int, indices []int) (values []byte, offsets []int64) {
	offsets = []int64{0}
	for _, i := range indices {
		values = append(values, raggedRecord(i).Values[field]...)
		offsets = append(offsets, int64(len(values)/raggedSchema().Fields[field].RecordBytes()))
	}
	return values, offsets
}

func sequence(a, b int) (list []int) {
	for i := a; i < b; i++ {
		list = append(list, i)
	}
	return list
}

func TestSliceRagged(t *testing.T) {
	ds := open(t, buildRagged(t, 1100))
	defer ds.Close()
	for _, r := range [][2]int{{0, 0}, {0, 1}, {3, 4}, {511, 513}, {500, 1030}, {1099, 1100}, {0, 1100}, {512, 1024}} {
		for k, f := range ds.Specs()[:3] {
			offsets := make([]int64, r[1]-r[0]+1)
			v, err := ds.SliceRagged(f.Name, r[0], r[1], offsets)
			require.NoError(t, err)
			values, want := wantRagged(k, sequence(r[0], r[1]))
			if !bytes.Equal(v.Bytes(), values) || !slices.Equal(offsets, want) {
				t.Errorf("%s %v: wrong values or offsets", f.Name, r)
			}
			if v.Len() != int(want[len(want)-1]) || v.DType() != f.DType || !slices.Equal(v.Shape()[1:], f.Shape) {
				t.Errorf("%s %v: %v %v", f.Name, r, v.DType(), v.Shape())
			}
			require.NoError(t, errors.Join(ds.Warm(f.Name, r[0], r[1]), ds.Prefetch(f.Name, r[0], r[1])))
		}
	}
}

func TestGatherRagged(t *testing.T) {
	ds := open(t, buildRagged(t, 1100))
	defer ds.Close()
	indices := []int{1099, 0, 511, 512, 512, 700, 50, 2}
	offsets := make([]int64, len(indices)+1)
	var dst []byte
	for k, f := range ds.Specs()[:3] {
		values, want := wantRagged(k, indices)
		if err := ds.Lengths(t.Context(), f.Name, indices, offsets); err != nil || !slices.Equal(offsets, want) {
			t.Errorf("%s: offsets %v, want %v; %v", f.Name, offsets, want, err)
		}
		var err error
		dst, err = ds.GatherRagged(t.Context(), f.Name, indices, offsets, dst)
		if err != nil || !bytes.Equal(dst, values) || !slices.Equal(offsets, want) {
			t.Errorf("%s: wrong values or offsets %v", f.Name, err)
		}
	}
	dst = make([]byte, 1<<20)
	if n := testing.AllocsPerRun(50, func() {
		if _, err := ds.SliceRagged("tokens", 3, 11, offsets); err != nil {
			t.Error(err)
		}
		if _, err := ds.GatherRagged(context.Background(), "tokens", indices, offsets, dst); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRaggedMisuse(t *testing.T) {
	ds := open(t, buildRagged(t, 10))
	defer ds.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := ds.Slice("tokens", 0, 1)
	if err == nil || !strings.Contains(err.Error(), "SliceRagged") {
		t.Errorf("Run: %v", err)
	}
	if err := ds.Gather(ctx, "tokens", []int{1}, nil); err == nil || !strings.Contains(err.Error(), "GatherRagged") {
		t.Errorf("Gather: %v", err)
	}
	if _, err := ds.SliceRagged("labels", 0, 1, make([]int64, 2)); err == nil || !strings.Contains(err.Error(), "use Slice") {
		t.Errorf("SliceRagged of a fixed field: %v", err)
	}
	for _, r := range [][2]int{{-1, 2}, {3, 2}, {0, 11}} {
		if _, err := ds.SliceRagged("tokens", r[0], r[1], nil); err == nil {
			t.Errorf("%v: no error", r)
		}
	}
	for _, i := range []int{-1, 10} {
		if err := ds.Lengths(ctx, "tokens", []int{i}, make([]int64, 2)); err == nil {
			t.Errorf("record %d: no error", i)
		}
	}
	cancel()
	if _, err := ds.GatherRagged(ctx, "tokens", []int{1}, make([]int64, 2), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Offsets that are wrong are an error of the read that meets them, and of Verify.
func TestImpossibleOffsets(t *testing.T) {
	for name, offset := range map[string]uint64{"backwards": 0, "past the end": 1 << 40, "negative": 1 << 63} {
		path := buildRagged(t, 600)
		file := filepath.Join(path, "tokens.offsets-00000.npy")
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		binary.LittleEndian.PutUint64(data[4096+8*300:], offset)
		require.NoError(t, errors.Join(os.Remove(file), os.WriteFile(file, data, 0o444)))
		ds := open(t, path)
		for _, r := range [][2]int{{299, 300}, {300, 301}, {0, 512}, {290, 520}} {
			if r[0] == 300 && name == "backwards" {
				continue // a record that is too long could be one
			}
			if _, err := ds.SliceRagged("tokens", r[0], r[1], make([]int64, r[1]-r[0]+1)); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: %v: %v", name, r, err)
			}
		}
		if _, err := ds.GatherRagged(t.Context(), "tokens", []int{5, 299}, make([]int64, 3), nil); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		require.NoError(t, ds.Close())
		v, corruptions := datasettest.Verify(t, path)
		if len(corruptions) != 2 || v.Identity {
			t.Errorf("%s: want the block and the offsets: %v", name, corruptions)
		}
	}
}

func TestVerifyRagged(t *testing.T) {
	path := buildRagged(t, 1100)
	d, err := store.Open(path, store.OpenOptions{})
	require.NoError(t, err)
	v, corruptions := datasettest.Verify(t, path)
	if v.Bytes != d.Bytes() || len(corruptions) != 0 || !v.Identity {
		t.Errorf("%+v, want %d bytes; %v", v, d.Bytes(), corruptions)
	}
	// A flipped byte of the values of record 600 is found, and named.
	var offsets [2]int64
	ds := open(t, path)
	before, err := ds.SliceRagged("tokens", 512, 598, make([]int64, 87))
	require.NoError(t, err)
	at := len(before.Bytes())
	if _, err := ds.SliceRagged("tokens", 598, 599, offsets[:]); err != nil || offsets[1] == 0 {
		t.Fatal(offsets, err)
	}
	require.NoError(t, ds.Close())
	datasettest.Rewrite(t, filepath.Join(path, "tokens.values-00001.npy"), datasettest.Flip(4096+at))
	_, corruptions = datasettest.Verify(t, path)
	if len(corruptions) != 1 || corruptions[0].First > 598 || corruptions[0].Last < 598 || corruptions[0].Array != "tokens.values" || corruptions[0].First < 512 {
		t.Errorf("%v", corruptions)
	}
}

// Files of two datasets of one shape, each with its own good checksums, do not belong
// together, and Verify knows.
func TestVerifyTellsMixedDatasets(t *testing.T) {
	a, b := build(t, 10), buildOther(t, 10)
	for _, name := range []string{"labels-00000.npy", "labels-00000.crc.npy"} {
		data, err := os.ReadFile(filepath.Join(b, name))
		require.NoError(t, err)
		require.NoError(t, errors.Join(os.Remove(filepath.Join(a, name)), os.WriteFile(filepath.Join(a, name), data, 0o444)))
	}
	d, err := store.Open(a, store.OpenOptions{})
	require.NoError(t, err)
	column := layout.Of(d).Column(2, layout.Whole)
	column.Extents[0].SumsCRC32C = "" // as in an HDF5 file, whose manifest has none
	var corruptions []*store.CorruptionError
	v, err := verify.Dataset(t.Context(), d, verify.Options{Corrupt: func(d *store.CorruptionError) { corruptions = append(corruptions, d) }})
	if err != nil || v.Corruptions != 1 || !v.Identity || !strings.Contains(corruptions[0].Error(), "do not belong together") {
		t.Errorf("%+v, %v, %v", v, corruptions, err)
	}
}

// buildOther is build with other labels.
func buildOther(t *testing.T, n int) string {
	t.Helper()
	return write(t, schema(), flat.Options{}, n, func(i int) *store.Record {
		r := record(i)
		r.Values[2][0] ^= 1
		return r
	})
}

func TestTruncatedRaggedFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("truncating a mapped file is not possible or not defined on " + runtime.GOOS)
	}
	for _, name := range []string{"tokens.values-00001.npy", "tokens.offsets-00001.npy"} {
		path := buildRagged(t, 1100)
		ds := open(t, path)
		file := filepath.Join(path, name)
		cut(t, file, 4096)
		_, err := ds.GatherRagged(t.Context(), "tokens", []int{5, 608, 6}, make([]int64, 4), nil)
		var r *mmapds.ReadError
		if !errors.As(err, &r) || r.Path != file || r.Field != "tokens" || name == "tokens.values-00001.npy" && r.Record() != 608 {
			t.Errorf("%s: got %v", name, err)
		}
		require.NoError(t, ds.Close())
	}
}

func TestRaggedRunsAreContiguousWithinAShard(t *testing.T) {
	ds := open(t, buildRagged(t, 1100))
	defer ds.Close()
	for _, c := range []struct {
		a, b int
		want bool
	}{{0, 0, true}, {0, 512, true}, {3, 9, true}, {512, 1000, true}, {500, 530, false}, {0, 1101, false}} {
		if got := ds.Contiguous("tokens", c.a, c.b); got != c.want {
			t.Errorf("[%d, %d): %v", c.a, c.b, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { ds.Contiguous("tokens", 3, 9) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
