package rechunk_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/rechunk"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

var cases = flag.Int("rechunk.cases", 30, "random arrays that are written in chunks of other shapes")

// array writes a .npy file of int32 with the values 0, 1, ...
func array(t *testing.T, path string, shape []int) {
	t.Helper()
	var b bytes.Buffer
	text := strings.TrimSuffix(fmt.Sprint(tensor.Shape(shape)), ",)")
	if len(shape) == 1 {
		text = fmt.Sprintf("(%d,", shape[0])
	}
	text = strings.TrimSuffix(text, ")")
	head := fmt.Sprintf("{'descr': '<i4', 'fortran_order': False, 'shape': %s), }", text)
	head += strings.Repeat(" ", 63-(len(head)+10)%64) + "\n"
	b.WriteString(npy.Magic + "\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(head)))
	b.WriteString(head)
	for i := range tensor.Shape(shape).Elems() {
		binary.Write(&b, binary.LittleEndian, int32(i*7))
	}
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// same compares the values of two datasets.
func same(t *testing.T, a, b, field string) {
	t.Helper()
	var data [2][]byte
	for k, path := range []string{a, b} {
		ds, err := mmapds.Open(path)
		require.NoError(t, err)
		defer ds.Close()
		name := ds.Specs()[0].Name
		if k == 1 {
			name = field
		}
		all := make([]int, ds.Len())
		for i := range all {
			all[i] = i
		}
		i := slices.IndexFunc(ds.Specs(), func(s tensor.Spec) bool { return s.Name == name })
		data[k] = make([]byte, len(all)*ds.Specs()[i].RecordBytes())
		require.NoError(t, ds.Gather(t.Context(), name, all, data[k]))
	}
	if !bytes.Equal(data[0], data[1]) {
		t.Fatalf("%s and %s differ", a, b)
	}
}

// files returns the contents of all files in a folder.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	list := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		list[name] = string(text)
		return err
	})
	require.NoError(t, err)
	return list
}

// TestRechunk writes random arrays in chunks of one shape, and those in chunks of another, within random memory.
func TestRechunk(t *testing.T) {
	for seed := range uint64(*cases) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		shape := make([]int, 1+r.IntN(4))
		for k := range shape {
			shape[k] = 1 + r.IntN(11)
		}
		array(t, filepath.Join(dir, "x.npy"), shape)
		source := filepath.Join(dir, "x.npy")
		for step := range 3 {
			o := rechunk.Options{Chunks: map[string]int{}, Workers: 1 + r.IntN(3), Memory: 20_000 + r.Int64N(60_000)}
			for k := range shape {
				if r.IntN(3) > 0 || k == 0 {
					o.Chunks[fmt.Sprint(k)] = 1 + r.IntN(13)
				}
			}
			dest := filepath.Join(dir, fmt.Sprintf("%d.zarr", step))
			p, err := rechunk.NewPlan(t.Context(), source, dest, o)
			if err != nil && strings.Contains(err.Error(), "is too little") {
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: %v of %v in %v", seed, err, shape, o)
			}
			done := int64(0)
			if err := p.Run(t.Context(), func(n int64) { done += n }); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if done != p.Arrays[0].Bytes || p.Arrays[0].Reads < done {
				t.Fatalf("seed %d: %d bytes done, of %+v", seed, done, p.Arrays[0])
			}
			same(t, filepath.Join(dir, "x.npy"), dest, "x")
			source = dest
		}
	}
}

// TestRechunkStopped stops a run after each box, and continues it: the bytes are those of one that was not stopped.
func TestRechunkStopped(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "x.npy")
	array(t, source, []int{40, 10, 9})
	plan := func(dest string, resume bool) *rechunk.Plan {
		p, err := rechunk.NewPlan(t.Context(), source, filepath.Join(dir, dest), rechunk.Options{
			Chunks: map[string]int{"0": 5, "1": 3, "2": 4}, Workers: 2, Memory: 4000, Resume: resume})
		require.NoError(t, err)
		return p
	}
	require.NoError(t, plan("whole.zarr", false).Run(t.Context(), nil))
	want := files(t, filepath.Join(dir, "whole.zarr"))
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		boxes := 0
		err := plan("stopped.zarr", true).Run(ctx, func(int64) {
			if boxes++; boxes > stops {
				cancel()
			}
		})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "stopped.zarr")); err == nil {
			t.Fatal("a run that was stopped made its destination")
		}
		// A kill leaves a file that is not complete.
		chunks, err := filepath.Glob(filepath.Join(dir, ".stopped.zarr.rechunk", "x", "c.*"))
		if err != nil || len(chunks) == 0 {
			t.Fatal(chunks, err)
		}
		require.NoError(t, os.Rename(chunks[len(chunks)-1], chunks[len(chunks)-1]+".tmp"))
		stops++
	}
	if stops < 3 {
		t.Errorf("it was stopped %d times: this test sees too little", stops)
	}
	got := files(t, filepath.Join(dir, "stopped.zarr"))
	for name := range got {
		if strings.HasSuffix(name, ".tmp") {
			delete(got, name)
			t.Errorf("%s is left", name)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs", name)
		}
	}
}

// TestRechunkAxes writes a file of h5py by the names of its axes, with its coordinates, attributes apart.
func TestRechunkAxes(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "x.zarr")
	p, err := rechunk.NewPlan(t.Context(), "../../internal/hdf5/meta/testdata/scales-new.h5", dest, rechunk.Options{
		Chunks: map[string]int{"time": 6, "lat": 2}, Fields: []string{"t2m"}})
	require.NoError(t, err)
	require.NoError(t, p.Run(t.Context(), nil))
	ds, err := mmapds.Open(dest)
	require.NoError(t, err)
	defer ds.Close()
	if got := ds.ChunkShape("t2m"); !slices.Equal(got, []int{6, 2, 5}) {
		t.Errorf("chunks %v", got)
	}
	if got := ds.Specs()[0].Dims; !slices.Equal(got, []string{"time", "lat", "lon"}) {
		t.Errorf("axes %q", got)
	}
	for _, name := range []string{"time", "lat", "lon"} {
		if _, err := os.Stat(filepath.Join(dest, name, "zarr.json")); err != nil {
			t.Error(err)
		}
	}
}

// TestRechunkRefuses reports plans that cannot be.
func TestRechunkRefuses(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "x.npy")
	array(t, source, []int{12, 10})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "there.zarr"), 0o777))
	for want, c := range map[string]struct {
		dest string
		o    rechunk.Options
	}{
		"no axis has a chunk size":         {"y.zarr", rechunk.Options{}},
		`there is no axis "lat"`:           {"y.zarr", rechunk.Options{Chunks: map[string]int{"lat": 2}}},
		"must be at least 1":               {"y.zarr", rechunk.Options{Chunks: map[string]int{"0": 0}}},
		"ends with .zarr":                  {"y.h5", rechunk.Options{Chunks: map[string]int{"0": 2}}},
		"exists; use --overwrite":          {"there.zarr", rechunk.Options{Chunks: map[string]int{"0": 2}}},
		"is not a folder of Zarr":          {"there.zarr", rechunk.Options{Chunks: map[string]int{"0": 2}, Overwrite: true}},
		"--memory of 100 bytes is too lit": {"y.zarr", rechunk.Options{Chunks: map[string]int{"0": 2}, Memory: 100}},
		"no field":                         {"y.zarr", rechunk.Options{Chunks: map[string]int{"0": 2}, Fields: []string{"z"}}},
	} {
		if _, err := rechunk.NewPlan(t.Context(), source, filepath.Join(dir, c.dest), c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRechunkTwice starts a run while another one writes the same destination.
func TestRechunkTwice(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "x.npy")
	array(t, source, []int{40, 10, 9})
	plan := func() *rechunk.Plan {
		p, err := rechunk.NewPlan(t.Context(), source, filepath.Join(dir, "x.zarr"), rechunk.Options{
			Chunks: map[string]int{"0": 5, "1": 3, "2": 4}, Workers: 2, Memory: 4000, Resume: true})
		require.NoError(t, err)
		return p
	}
	second := plan()
	var busy error
	require.NoError(t, plan().Run(t.Context(), func(int64) {
		if busy == nil {
			busy = second.Run(t.Context(), nil)
		}
	}))
	if !errors.Is(busy, store.ErrBusy) || !strings.Contains(busy.Error(), "another run is writing") {
		t.Errorf("the second run: %v", busy)
	}
	same(t, source, filepath.Join(dir, "x.zarr"), "x")
	if left, err := filepath.Glob(filepath.Join(dir, ".x*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
