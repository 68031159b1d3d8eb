package mmapds_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// packedScript stores the same numbers in several ways, and as they are.
const packedScript = `
    a = (np.arange(50*3*8*8) // 5 % 200).reshape(50, 3, 8, 8)
    f["plain"] = a.astype("u1")
    f.create_dataset("gzip", data=a.astype("u1"), chunks=(1, 3, 8, 8), compression="gzip")
    f.create_dataset("many", data=a.astype("u1"), chunks=(7, 3, 8, 8), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("auto", data=a.astype("u1"), chunks=(8, 2, 5, 8), compression="lzf")
    f.create_dataset("big", data=a.astype(">u2"))
    f.create_dataset("wide", data=a.astype("<u2"), chunks=(4, 3, 8, 8), compression="gzip", shuffle=True)
`

// wide turns bytes into uint16s.
func wide(b []byte) []byte {
	out := make([]byte, 2*len(b))
	for i, x := range b {
		out[2*i] = x
	}
	return out
}

func TestPacked(t *testing.T) {
	ds := open(t, h5test.File(t, packedScript))
	defer ds.Close()
	plain, err := ds.Slice("plain", 0, 50)
	require.NoError(t, err)
	indices := append(rand.New(rand.NewPCG(1, 1)).Perm(50), 7, 7, 0)
	for _, f := range ds.Specs() {
		size := f.RecordBytes()
		want := plain.Bytes()
		if f.Name == "big" || f.Name == "wide" {
			want = wide(want)
		}
		v, err := ds.Slice(f.Name, 3, 20)
		if err != nil || !bytes.Equal(v.Bytes(), want[3*size:20*size]) || v.Len() != 17 || v.DType() != f.DType {
			t.Errorf("%s: run: %v %v, error %v", f.Name, v.DType(), v.Shape(), err)
		}
		if err := errors.Join(ds.Prefetch(f.Name, 0, 50), ds.Warm(f.Name, 0, 50)); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		dst := make([]byte, len(indices)*size)
		require.NoError(t, ds.Gather(t.Context(), f.Name, indices, dst))
		for k, i := range indices {
			if !bytes.Equal(dst[k*size:(k+1)*size], want[i*size:(i+1)*size]) {
				t.Fatalf("%s: record %d: wrong bytes", f.Name, i)
			}
		}
		if got := ds.Contiguous(f.Name, 0, 2); got != (f.Name == "plain") {
			t.Errorf("%s: contiguous %v", f.Name, got)
		}
		for _, i := range []int{-1, 50} {
			if err := ds.Gather(t.Context(), f.Name, []int{i}, make([]byte, size)); err == nil {
				t.Errorf("%s: record %d: no error", f.Name, i)
			}
		}
	}
}

// Only Open takes packed data; Locate returns an error that says why there are no extents.
func TestLocatePacked(t *testing.T) {
	path := h5test.File(t, packedScript)
	if _, err := store.Open(path, store.OpenOptions{}); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "cannot be mapped") {
		t.Errorf("got %v", err)
	}
	ds, err := mmapds.Open(path, mmapds.WithFields("many", "plain"))
	require.NoError(t, err)
	defer ds.Close()
	if c := layout.Of(ds.Files()).Columns; len(c) != 2 || !c[0].Packed || len(c[0].Extents) != 1 || c[0].Extents[0].SumsPath != "" || c[0].Rows != 50 || c[1].Packed {
		t.Errorf("%+v", c)
	}
}

// The loader's batches of packed data are those of data that is stored as it is.
func TestLoadPacked(t *testing.T) {
	ds, err := mmapds.Open(h5test.File(t, packedScript), mmapds.WithFields("plain", "gzip", "many", "auto"))
	require.NoError(t, err)
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 8, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 3})
	require.NoError(t, err)
	defer ld.Close()
	n := 0
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		n += b.Len()
		want := b.Field("plain").Bytes()
		for _, name := range []string{"gzip", "many", "auto"} {
			if !bytes.Equal(b.Field(name).Bytes(), want) {
				t.Fatalf("%s: other bytes than in place", name)
			}
		}
	}
	if n < 48 {
		t.Errorf("%d records, want 50 or all whole batches", n)
	}
}

func TestPackedAllocatesNothing(t *testing.T) {
	ds := open(t, h5test.File(t, packedScript))
	defer ds.Close()
	ctx := context.Background()
	indices := []int{4, 40, 12, 13, 4}
	step := func() {
		for _, f := range ds.Specs() {
			require.NoError(t, ds.Gather(ctx, f.Name, indices, room[:len(indices)*f.RecordBytes()]))
		}
	}
	for range 20 {
		step()
	}
	if n := testing.AllocsPerRun(50, step); n >= 1 {
		t.Errorf("%v allocations a round", n)
	}
}

var room = make([]byte, 1<<16)

// Corruption is an error that names field, file and chunk.
func TestPackedCorruption(t *testing.T) {
	path := h5test.File(t, `    f.create_dataset("x", data=np.arange(40000).reshape(40, 1000), chunks=(4, 1000), compression="gzip")`)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.LastIndex(b, []byte{0x78, 0x5e})
	if at < 0 {
		t.Fatal("no deflate stream in the file")
	}
	b[at+200] ^= 0x55
	require.NoError(t, os.WriteFile(path, b, 0o600))
	ds := open(t, path)
	defer ds.Close()
	_, err = ds.Slice("x", 0, 40)
	if !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{`field "x"`, path, "chunk [", "deflate"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestPackedTruncated(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("truncating a mapped file is not possible or not defined on " + runtime.GOOS)
	}
	path := h5test.File(t, packedScript)
	ds := open(t, path)
	defer ds.Close()
	require.NoError(t, os.Truncate(path, 4096))
	dst := make([]byte, 50*192)
	indices := make([]int, 50)
	for i := range indices {
		indices[i] = i
	}
	var wg sync.WaitGroup
	for _, name := range []string{"gzip", "many", "auto"} {
		wg.Go(func() {
			if err := ds.Gather(t.Context(), name, indices, bytes.Clone(dst)); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
}
