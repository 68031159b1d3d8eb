package loader_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
)

// These tests run the loader over mapped files.

const (
	mappedRecords = 2000
	mappedWidth   = 64
)

// writeMapped makes a dataset of small records in shards of 512.
func writeMapped(t testing.TB) string {
	t.Helper()
	return writeDataset(t, newMemorySource(mappedRecords, mappedWidth))
}

// writeDataset makes a dataset of the records of m, in shards as small as they can be.
func writeDataset(t testing.TB, m *memory) string {
	t.Helper()
	var schema store.Schema
	for _, s := range m.specs {
		schema.Fields = append(schema.Fields, store.NewField(s.Name, s.DType, s.Shape...))
	}
	path := datasettest.BuildFlat(t, schema, flat.Options{ShardBytes: 1}, m.n, store.Info{}, func(i int, r *store.Record) {
		for f, s := range m.specs {
			copy(r.Values[f], m.data[f][i*s.RecordBytes():])
		}
	})
	return path
}

func openMapped(t testing.TB, path string, o loader.Options) *loader.Loader {
	t.Helper()
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	ld, err := loader.New(ds, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ld.Close(); err != nil {
			t.Error(err)
		}
		if err := ds.Close(); err != nil { // waits for ever if a lease is left
			t.Error(err)
		}
	})
	return ld
}

// cut makes a file of a dataset shorter, which is written only by the superuser as it is.
func cut(t testing.TB, path string, size int64) {
	t.Helper()
	require.NoError(t, errors.Join(os.Chmod(path, 0o600), os.Truncate(path, size)))
}

func TestMappedSequentialIsAView(t *testing.T) {
	ld := openMapped(t, writeMapped(t), loader.Options{BatchSize: 300, Workers: 2})
	if got := visit(t, ld, 0); !slices.IsSorted(got) || len(got) != mappedRecords {
		t.Errorf("records %v", got)
	}
	const all = mappedRecords * (mappedWidth + 8)
	st := ld.Stats()
	if st.ViewBytes+st.CopiedBytes != all || runtime.GOOS == "linux" && st.CopiedBytes != 0 {
		t.Errorf("%+v: want %d bytes viewed, none copied", st, all)
	}
}

func TestMappedFileTruncated(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		path := writeMapped(t)
		ld := openMapped(t, path, loader.Options{BatchSize: 64, Workers: 2, Sampler: order})
		cut(t, filepath.Join(path, "x-00002.npy"), 4096+64*mappedWidth)
		_, err := run(context.Background(), ld, func(b loader.Batch) { checkBatch(t, b) })
		var e *loader.Error
		// 64 records are a page. (Of a page that the file ends within, the rest reads as 0.)
		if !errors.As(err, &e) || e.Record < 2*512+64 || e.Record >= 3*512 || !strings.Contains(err.Error(), "x-00002.npy") {
			t.Errorf("%T: error %v; want one that names a record of x-00002.npy", order, err)
		}
	}
}

func TestMappedAllocatesNothingPerBatch(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		ld := openMapped(t, writeMapped(t), loader.Options{BatchSize: 4, Workers: 1, Sampler: order})
		next, stop := pull(ld)
		next(t)
		if got := testing.AllocsPerRun(400, func() { next(t) }); got != 0 {
			t.Errorf("%T: %v allocations a batch after the first", order, got)
		}
		stop()
	}
}
