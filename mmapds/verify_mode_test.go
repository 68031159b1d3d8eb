package mmapds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// check is a mode, or a fraction of the blocks.
type check struct {
	mode     mmapds.VerifyMode
	fraction float64
}

func (c check) option() mmapds.Option {
	if c.fraction != 0 {
		return mmapds.WithVerifySample(c.fraction)
	}
	return mmapds.WithVerify(c.mode)
}

func openChecked(t testing.TB, path string, mode mmapds.VerifyMode) *mmapds.Dataset {
	t.Helper()
	return openCheck(t, path, check{mode: mode})
}

func openCheck(t testing.TB, path string, c check) *mmapds.Dataset {
	t.Helper()
	ds, err := mmapds.Open(path, c.option())
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return ds
}

// readers are the ways to records of a field with records of one length.
var readers = map[string]func(ds *mmapds.Dataset, field string, i int) error{
	"gather": func(ds *mmapds.Dataset, field string, i int) error {
		s := ds.Specs()[0]
		for _, f := range ds.Specs() {
			if f.Name == field {
				s = f
			}
		}
		return ds.Gather(context.Background(), field, []int{i}, make([]byte, s.RecordBytes()))
	},
	"warm": func(ds *mmapds.Dataset, field string, i int) error { return ds.Warm(field, i, i+1) },
	"run": func(ds *mmapds.Dataset, field string, i int) error {
		_, err := ds.Slice(field, i, i+1)
		return err
	},
}

func TestChecksFindCorruption(t *testing.T) {
	path := build(t, 1100)
	file := filepath.Join(path, "images-00001.npy")
	datasettest.Rewrite(t, file, datasettest.Flip(4096+40*1800+9)) // in record 552, of the block of 548 to 583
	for _, checks := range []check{{mode: mmapds.VerifyFirstTouch}, {mode: mmapds.VerifyAlways}, {fraction: 1}, {fraction: 0.5}, {mode: mmapds.VerifyOff}} {
		for name, read := range readers {
			ds := openCheck(t, path, checks)
			found := 0
			for range 40 {
				if err := errors.Join(read(ds, "images", 547), read(ds, "images", 584), read(ds, "labels", 552)); err != nil {
					t.Fatalf("%v, %s: %v", checks, name, err)
				}
				if err := read(ds, "images", 570); err != nil {
					checkCorruption(t, err, file)
					found++
				}
			}
			if sometimes := checks.fraction == 0.5; found == 0 != (checks == check{}) || found != 40 && found != 0 && !sometimes || found == 40 && sometimes {
				t.Errorf("%v, %s: found %d times of 40", checks, name, found)
			}
		}
	}
}

func checkCorruption(t *testing.T, err error, file string) {
	t.Helper()
	var d *store.CorruptionError
	if !errors.As(err, &d) || !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if d.Field != "images" || d.Shard != 1 || d.Path != file || d.Offset != 4096+36*1800 || d.First != 548 || d.Last != 583 || d.Record() != 570 {
		t.Errorf("%+v", d)
	}
	for _, part := range []string{"record 570", `field "images"`, "shard 1", "images-00001.npy", fmt.Sprintf("%#x", d.Offset)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// VerifyAlways finds corruption that came after the first read.
func TestAlwaysLooksAgain(t *testing.T) {
	for _, checks := range []mmapds.VerifyMode{mmapds.VerifyFirstTouch, mmapds.VerifyAlways} {
		path := build(t, 600)
		ds := openChecked(t, path, checks)
		require.NoError(t, errors.Join(readers["gather"](ds, "images", 3), readers["run"](ds, "images", 3)))
		datasettest.Rewrite(t, filepath.Join(path, "images-00000.npy"), datasettest.Flip(4096+5*1800))
		err := readers["gather"](ds, "images", 3)
		if (err != nil) != (checks == mmapds.VerifyAlways) {
			t.Errorf("%v: %v", checks, err)
		}
	}
}

func TestChecksOfRagged(t *testing.T) {
	want, _ := wantRagged(0, []int{55, 24})
	for file, record := range map[string]int{"tokens.values-00000.npy": 24, "tokens.offsets-00000.npy": 55} {
		path := buildRagged(t, 700)
		ds := openChecked(t, path, mmapds.VerifyAlways)
		offsets := make([]int64, 3)
		got, err := ds.GatherRagged(t.Context(), "tokens", []int{55, 24}, offsets, nil)
		if err != nil || len(want) == 0 || !bytes.Equal(got, want) {
			t.Fatalf("not corrupt: %v", err)
		}
		datasettest.Rewrite(t, filepath.Join(path, file), datasettest.Flip(4096+8*500))
		_, err = ds.GatherRagged(t.Context(), "tokens", []int{55, 24}, offsets, nil)
		var d *store.CorruptionError
		if !errors.As(err, &d) || filepath.Base(d.Path) != file || d.Shard != 0 || d.First > int64(d.Record()) || d.Last < int64(d.Record()) {
			t.Errorf("%s, record %d: %v", file, record, err)
		}
	}
}

func TestChecksOfCorruptSums(t *testing.T) {
	path := build(t, 10)
	datasettest.Rewrite(t, filepath.Join(path, "images-00000.crc.npy"), datasettest.Flip(4096))
	ds := openChecked(t, path, mmapds.VerifyFirstTouch)
	for range 2 {
		err := readers["gather"](ds, "images", 3)
		if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "the records themselves may be whole") {
			t.Errorf("got %v", err)
		}
	}
}

func TestChecksAllocateNothing(t *testing.T) {
	for _, checks := range []check{{mode: mmapds.VerifyFirstTouch}, {mode: mmapds.VerifyAlways}, {fraction: .5}} {
		ds := openCheck(t, build(t, 600), checks)
		dst, indices := make([]byte, 3*1800), []int{599, 3, 520}
		if n := testing.AllocsPerRun(50, func() {
			if err := ds.Gather(t.Context(), "images", indices, dst); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", checks, n)
		}
	}
}

func TestChecksThatDoNotExist(t *testing.T) {
	path := build(t, 1)
	for _, c := range []check{{mode: -2}, {mode: 9}, {fraction: 1.5}, {fraction: -0.5}, {fraction: math.NaN()}} {
		if _, err := mmapds.Open(path, c.option()); err == nil || !strings.Contains(err.Error(), "WithVerify") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// A loader's batches are checked, views as well as copies, and its error names the record.
func TestLoaderFindsCorruption(t *testing.T) {
	path := build(t, 600)
	datasettest.Rewrite(t, filepath.Join(path, "images-00001.npy"), datasettest.Flip(4096+40*1800+9))
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		ds := openChecked(t, path, mmapds.VerifyFirstTouch)
		ld, err := loader.New(ds, loader.Options{BatchSize: 10, Sampler: order})
		require.NoError(t, err)
		var failed *loader.Error
		for _, err := range ld.Epoch(t.Context(), 0) {
			errors.As(err, &failed)
		}
		if failed == nil || failed.Field != "images" || failed.Record < 548 || failed.Record > 583 || !errors.Is(failed, store.ErrCorrupt) {
			t.Errorf("%T: %v", order, failed)
		}
		ld.Close()
	}
}
