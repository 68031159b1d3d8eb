package kinds

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// gzipped returns data compressed.
func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// A run that is interrupted reads no source on: not while it is opened, and not afterwards.
func TestEverySourceIsInterrupted(t *testing.T) {
	hdf5, err := os.ReadFile("../../../internal/hdf5/meta/testdata/small-old-basic.h5")
	require.NoError(t, err)
	at := filepath.Join(t.TempDir(), "x.tar")
	writeTar(t, at, "a.txt", "b.txt")
	archived, err := os.ReadFile(at)
	require.NoError(t, err)
	idx := []byte("\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02abcdefgh")
	array := npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 48)
	column := npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }", 48)
	for _, c := range []struct {
		kind, name string
		data       []byte
		fields     string
	}{
		{"csv", "x.csv", []byte("a,b\n1,2\n3,4\n"), ""},
		{"csv", "x.csv.gz", gzipped(t, []byte("a,b\n1,2\n3,4\n")), ""},
		{"jsonl", "x.jsonl", []byte("{\"a\": 1}\n{\"a\": 2}\n"), ""},
		{"tar", "x.tar", archived, ""},
		{"tar", "x.tar.gz", gzipped(t, archived), ""},
		{"npy", "x.npy", array, ""},
		{"npy", "x.npy", column, ""},
		{"npz", "x.npz", zipped(t, "x.npy", array), ""},
		{"idx", "x-idx3-ubyte", idx, ""},
		{"idx", "x-idx3-ubyte.gz", gzipped(t, idx), ""},
		{"cifar", "data_batch_1.bin", make([]byte, 3073), ""},
		{"parquet", "x.parquet", parquetBytes(t, &parquet.Snappy, 3), ""},
		{"hdf5", "x.h5", hdf5, "i8be"},
		{"imagefolder", "cat/a.jpg", []byte("x"), ""},
	} {
		t.Run(c.kind+" "+filepath.Ext(c.name), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.name)
			require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, c.data, 0o666)))
			if c.kind == "imagefolder" {
				path = dir
			}
			stop := errors.New("SIGTERM")
			ctx, cancel := context.WithCancelCause(t.Context())
			s, err := Open(ctx, path, source.Options{Kind: c.kind, Fields: c.fields})
			require.NoError(t, err)
			defer s.Close()
			cancel(stop)
			n := 0
			for sample, err := range s.Samples() {
				if err == nil {
					n++
					err = sample.Data.Read(source.NewValues(len(s.Info().Fields)))
				}
				if err != nil {
					if !errors.Is(err, stop) {
						t.Errorf("sample %d: %v", n, err)
					}
					n = -1
					break
				}
			}
			if n >= 0 {
				t.Errorf("all of %d samples were read", n)
			}
			if again, err := Open(ctx, path, source.Options{Kind: c.kind}); err == nil {
				again.Close()
				if c.kind != "cifar" { // of which nothing is read before the samples
					t.Error("opened in spite of the interruption")
				}
			} else if !errors.Is(err, stop) && !strings.Contains(err.Error(), stop.Error()) {
				t.Errorf("opening: %v", err)
			}
		})
	}
}
