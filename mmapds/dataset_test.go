package mmapds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func schema() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 20, 30)
	images.Layout = tensor.CHW
	return store.Schema{Fields: []store.Field{images, store.NewField("weights", tensor.Float32, 8), store.NewField("labels", tensor.Int64)}}
}

func record(i int) *store.Record {
	r := store.NewRecord(schema())
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	for _, v := range r.Values[:2] {
		for k := range v {
			v[k] = byte(rng.Uint32() % 64) // no NaNs
		}
	}
	binary.LittleEndian.PutUint64(r.Values[2], uint64(i))
	return r
}

// inShards asks for shards of 512 records, the fewest.
var inShards = flat.Options{ShardBytes: 1}

// write writes n records to a new dataset and returns its path. A record is done with before
// the next is asked for.
func write(t testing.TB, s store.Schema, opts flat.Options, n int, record func(i int) *store.Record) string {
	t.Helper()
	return datasettest.BuildFlat(t, s, opts, n, store.Info{}, func(i int, r *store.Record) { *r = *record(i) })
}

// build writes n records in shards of 512 and returns the dataset's path.
func build(t testing.TB, n int) string {
	t.Helper()
	return write(t, schema(), inShards, n, record)
}

func open(t testing.TB, path string) *mmapds.Dataset {
	t.Helper()
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	return ds
}

func wantRun(field, a, b int) []byte {
	var all []byte
	for i := a; i < b; i++ {
		all = append(all, record(i).Values[field]...)
	}
	return all
}

func TestRunCrossesShards(t *testing.T) {
	ds := open(t, build(t, 1100))
	defer ds.Close()
	if ds.Len() != 1100 {
		t.Fatalf("%d records", ds.Len())
	}
	for _, r := range [][2]int{{0, 0}, {0, 1}, {511, 513}, {500, 1030}, {1099, 1100}, {1100, 1100}} {
		for k, f := range ds.Specs() {
			v, err := ds.Slice(f.Name, r[0], r[1])
			require.NoError(t, err)
			if !bytes.Equal(v.Bytes(), wantRun(k, r[0], r[1])) {
				t.Errorf("%s %v: wrong bytes", f.Name, r)
			}
			if v.Len() != r[1]-r[0] || v.DType() != f.DType || !slices.Equal(v.Shape()[1:], f.Shape) {
				t.Errorf("%s %v: %v %v", f.Name, r, v.DType(), v.Shape())
			}
			if !ds.Contiguous(f.Name, r[0], r[1]) && runtime.GOOS == "linux" {
				t.Errorf("%s %v: not contiguous", f.Name, r)
			}
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	ds := open(t, build(t, 600))
	defer ds.Close()
	dst := make([]byte, 3*1800)
	indices := []int{599, 3, 520}
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := ds.Slice("images", 3, 9); err != nil {
			t.Error(err)
		}
		if err := ds.Gather(ctx, "images", indices, dst); err != nil {
			t.Error(err)
		}
		if err := errors.Join(ds.Warm("labels", 0, 600), ds.Prefetch("images", 0, 600), ds.Retain()); err != nil {
			t.Error(err)
		}
		ds.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestGather(t *testing.T) {
	ds := open(t, build(t, 1100))
	defer ds.Close()
	indices := []int{1099, 0, 511, 512, 512, 700}
	for k, f := range ds.Specs() {
		dst := make([]byte, len(indices)*f.RecordBytes())
		require.NoError(t, ds.Gather(context.Background(), f.Name, indices, dst))
		for j, i := range indices {
			if got := dst[j*f.RecordBytes() : (j+1)*f.RecordBytes()]; !bytes.Equal(got, wantRun(k, i, i+1)) {
				t.Errorf("%s: record %d: wrong bytes", f.Name, i)
			}
		}
	}
}

func TestRangesThatDoNotExist(t *testing.T) {
	ds := open(t, build(t, 10))
	defer ds.Close()
	ctx := context.Background()
	for _, r := range [][2]int{{-1, 2}, {3, 2}, {0, 11}, {11, 11}} {
		_, err := ds.Slice("images", r[0], r[1])
		for _, err := range []error{err, ds.Prefetch("images", r[0], r[1]), ds.Warm("images", r[0], r[1])} {
			if err == nil {
				t.Errorf("%v: no error", r)
			}
		}
	}
	for _, i := range []int{-1, 10} {
		if err := ds.Gather(ctx, "labels", []int{i}, make([]byte, 8)); err == nil {
			t.Errorf("record %d: no error", i)
		}
	}
	if _, err := ds.Slice("nothing", 0, 1); err == nil {
		t.Error("unknown field: no error")
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := ds.Gather(canceled, "labels", []int{1}, make([]byte, 8)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestFields(t *testing.T) {
	path := build(t, 5)
	ds, err := mmapds.Open(path, mmapds.WithFields("labels"))
	require.NoError(t, err)
	defer ds.Close()
	if len(ds.Specs()) != 1 || ds.Specs()[0].Name != "labels" {
		t.Errorf("%v", ds.Specs())
	}
	for _, fields := range [][]string{{}, {"none"}, {"labels", "labels"}} {
		if _, err := mmapds.Open(path, mmapds.WithFields(fields...)); err == nil {
			t.Errorf("%v: no error", fields)
		}
	}
}

func TestOpenNothing(t *testing.T) {
	if _, err := mmapds.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := mmapds.Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestCloseWaitsForLeases(t *testing.T) {
	ds := open(t, build(t, 5))
	require.NoError(t, ds.Retain())
	closed := make(chan error)
	go func() { closed <- ds.Close() }()
	for ds.Retain() == nil { // until Close has begun
		ds.Release()
		time.Sleep(time.Millisecond)
	}
	v, err := ds.Slice("labels", 0, 5)
	if err != nil || tensor.As[int64](v)[4] != 4 {
		t.Errorf("a leased dataset cannot be read while Close waits: %v", err)
	}
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait: %v", err)
	default:
	}
	ds.Release()
	require.NoError(t, <-closed)
	if err := ds.Retain(); !errors.Is(err, mmapds.ErrClosed) {
		t.Errorf("Retain after Close: %v", err)
	}
	if _, err := ds.Slice("labels", 0, 1); !errors.Is(err, mmapds.ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
}

func TestReleaseWithoutRetainPanics(t *testing.T) {
	ds := open(t, build(t, 1))
	defer ds.Close()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	ds.Release()
}

func TestSecondClose(t *testing.T) {
	ds := open(t, build(t, 1))
	require.NoError(t, ds.Close())
	if err := ds.Close(); !errors.Is(err, mmapds.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// In checked builds a view that outlives its dataset faults, whatever was mapped since.
func TestStaleViewFaults(t *testing.T) {
	if !invariants.Enabled || runtime.GOOS != "linux" {
		t.Skip("needs a checked build on Linux: -tags invariants")
	}
	ds := open(t, build(t, 600))
	v, err := ds.Slice("images", 0, 600)
	require.NoError(t, err)
	require.NoError(t, ds.Close())
	other := open(t, build(t, 600)) // would reuse the addresses
	defer other.Close()
	if !faults(func() { bytes.Count(v.Bytes(), []byte{1}) }) {
		t.Error("stale memory was read")
	}
}

func TestTruncatedFileIsAnError(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("truncating a mapped file is not possible or not defined on " + runtime.GOOS)
	}
	for _, touched := range []bool{false, true} {
		path := build(t, 1100)
		ds := open(t, path)
		if touched {
			require.NoError(t, ds.Warm("images", 0, 1100))
		}
		shard := filepath.Join(path, "images-00001.npy")
		cut(t, shard, 4096+10*1800)
		dst := make([]byte, 3*1800)
		err := ds.Gather(context.Background(), "images", []int{5, 1000, 6}, dst)
		checkReadError(t, err, shard, 1000)
		v, err := ds.Slice("images", 900, 901)
		require.NoError(t, err)
		err = ds.Guard(func() error {
			_ = bytes.Count(v.Bytes(), []byte{1})
			return nil
		})
		checkReadError(t, err, shard, 900)
		if !touched {
			checkReadError(t, ds.Warm("images", 1020, 1023), shard, 1020)
		}
		if err := ds.Gather(context.Background(), "images", []int{5, 1050, 520}, dst); err != nil {
			t.Errorf("records whose bytes are complete: %v", err)
		}
		require.NoError(t, ds.Close())
	}
}

func checkReadError(t *testing.T, err error, path string, record int) {
	t.Helper()
	var r *mmapds.ReadError
	if !errors.As(err, &r) || r.Path != path || r.Record() != record || r.Field != "images" {
		t.Errorf("got %v, want an error of %s, record %d", err, path, record)
	}
}

func TestGuardPassesOtherPanics(t *testing.T) {
	ds := open(t, build(t, 1))
	defer ds.Close()
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = ds.Guard(func() error { panic("mine") })
}

func TestOpenErrorsNameThePathOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := mmapds.Open(path); err == nil || strings.Count(err.Error(), path) != 1 {
		t.Errorf("got %v", err)
	}
}
