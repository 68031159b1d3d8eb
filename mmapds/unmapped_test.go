package mmapds_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// TestUnmapped reads a dataset in as many files as cannot be mapped, beside the same one mapped.
func TestUnmapped(t *testing.T) {
	path := buildRagged(t, 1200) // three shards
	mapped, err := mmapds.Open(path)
	require.NoError(t, err)
	defer mapped.Close()
	r := rand.New(rand.NewPCG(3, 4))
	for _, verify := range []mmapds.VerifyMode{mmapds.VerifyOff, mmapds.VerifyFirstTouch, mmapds.VerifyAlways} {
		ds, err := mmapds.Open(path, mmapds.WithMostMapped(2), mmapds.WithVerify(verify))
		require.NoError(t, err)
		for range 40 {
			records := r.Perm(ds.Len())[:1+r.IntN(20)]
			a := r.IntN(ds.Len())
			b := min(ds.Len(), a+r.IntN(60))
			for _, spec := range ds.Specs() {
				want, got := readAll(t, mapped, spec.Name, spec.Ragged, records, a, b), readAll(t, ds, spec.Name, spec.Ragged, records, a, b)
				if want != got {
					t.Fatalf("%v: %s of records %v and [%d, %d): %s, mapped %s", verify, spec.Name, records, a, b, got, want)
				}
				if !spec.Ragged && b > a && ds.Contiguous(spec.Name, a, b) {
					t.Fatalf("%s of [%d, %d) is a view", spec.Name, a, b)
				}
			}
		}
		if how, why, _ := ds.DescribeReads(ds.Specs()[0].Name); how != "pread" || !strings.Contains(why, "more than 2 files") {
			t.Errorf("%s, as %s", how, why)
		}
		require.NoError(t, ds.Close())
	}
}

// readAll returns what each way of reading says of a field.
func readAll(t *testing.T, ds *mmapds.Dataset, name string, ragged bool, records []int, a, b int) string {
	t.Helper()
	if ragged {
		offsets, many := make([]int64, b-a+1), make([]int64, len(records)+1)
		v, err := ds.SliceRagged(name, a, b, offsets)
		require.NoError(t, err)
		dst, err := ds.GatherRagged(t.Context(), name, records, many, nil)
		require.NoError(t, err)
		return fmt.Sprint(v.Bytes(), offsets, many, dst)
	}
	v, err := ds.Slice(name, a, b)
	require.NoError(t, err)
	size := v.Shape()[1:].Elems() * v.DType().Size()
	dst := make([]byte, len(records)*size)
	require.NoError(t, ds.Gather(t.Context(), name, records, dst))
	list, err := ds.Records(name)
	require.NoError(t, err)
	one, err := list.At(records[0])
	require.NoError(t, err)
	if !bytes.Equal(one, dst[:size]) {
		t.Errorf("%s: record %d is %v by itself, and %v of several", name, records[0], one, dst[:size])
	}
	require.NoError(t, ds.Warm(name, a, b))
	return fmt.Sprint(v.Bytes(), dst)
}

// TestUnmappedTruncated has a file that was cut short after the dataset was opened be an error, with the file.
func TestUnmappedTruncated(t *testing.T) {
	path := buildRagged(t, 1200) // three shards
	ds, err := mmapds.Open(path, mmapds.WithMostMapped(2))
	require.NoError(t, err)
	defer ds.Close()
	files, err := filepath.Glob(filepath.Join(path, "*.npy"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Truncate(f, 4096))
	}
	for _, spec := range ds.Specs() {
		if spec.Ragged {
			continue
		}
		err := ds.Gather(t.Context(), spec.Name, []int{3}, make([]byte, spec.RecordBytes()))
		if err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
}
