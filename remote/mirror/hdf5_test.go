package mirror

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// buildHDF5 writes a file whose images are too large to count as metadata, and with many
// tokens a record these, too.
func buildHDF5(t *testing.T, n, tokens int, opts hdf5.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds.h5")
	w, err := hdf5.Create(path, recordSchema, opts)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	writeRecords(t, w, n, tokens, opts.Splits)
	return path
}

var recordSchema = store.Schema{Fields: []store.Field{
	store.NewField("images", tensor.Uint8, 70, 70), store.NewField("labels", tensor.Int64), store.NewRagged("tokens", tensor.Int32),
}}

// writeRecords writes n records of recordSchema, each of less than that many tokens.
func writeRecords(t *testing.T, w store.Writer, n, tokens int, splits []string) {
	t.Helper()
	datasettest.Write(t, w, recordSchema, n, store.Info{}, func(i int, r *store.Record) {
		fill(r.Values[0], i)
		fill(r.Values[1], i)
		r.Values[2] = make([]byte, i%tokens*4)
		fill(r.Values[2], i+3)
		if splits != nil {
			r.Split = splits[i/7%len(splits)]
		}
	})
}

func TestHDF5(t *testing.T) {
	path := buildHDF5(t, 2000, 50, hdf5.Options{})
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	b := new(membucket.Memory)
	b.Put("a/ds.h5", data)
	local, err := mmapds.Open(path)
	require.NoError(t, err)
	defer local.Close()
	opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2}
	want := epoch(t, local, opts, 0)
	cache := filepath.Join(t.TempDir(), "cache")
	d := open(t, b, "a/ds.h5", Options{CacheDir: cache})
	if st := d.Stats(); st.Fetched > int64(len(data))/3 {
		t.Errorf("opening fetched %d of %d bytes", st.Fetched, len(data))
	}
	if !bytes.Equal(epoch(t, d, opts, 0), want) || d.ID() != local.ID() {
		t.Error("other bytes than from the local file")
	}
	if st := d.Stats(); st.Fetched > int64(len(data)) || !d.Complete() {
		t.Errorf("%d bytes were fetched of %d; complete %v", st.Fetched, len(data), d.Complete())
	}
	d.Close()
	file := filepath.Join(d.Dir(), hdf5Name)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	if !bytes.Equal(text, data) {
		t.Error("a complete mirror is not the file")
	}
	for _, at := range []int{60, len(text) / 2} { // of the metadata, and of the records
		text[at] ^= 4
	}
	require.NoError(t, os.WriteFile(file, text, 0o600))
	again := open(t, b, "a/ds.h5", Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, again, opts, 0), want) {
		t.Error("a poisoned mirror gave its poison")
	}
}

// A compressed file of penstock: images and the values of ragged fields in chunks. Reading one
// split or some fields fetches no others.
func TestCompressedHDF5(t *testing.T) {
	path := buildHDF5(t, 2000, 500, hdf5.Options{Splits: []string{"train", "val"}, Compress: &hdf5.Compression{Level: 1}})
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	b := new(membucket.Memory)
	b.Put("a/ds.h5", data)
	for _, c := range []struct {
		fields []string
		split  string
		most   float64 // of the file
	}{
		{nil, "", 1.01}, {nil, "val", 0.9},
		{[]string{"images"}, "", 0.85}, {[]string{"labels", "tokens"}, "", 0.3},
	} {
		local, err := mmapds.Open(path, mmapds.WithFields(c.fields...), mmapds.WithSplit(c.split))
		require.NoError(t, err)
		defer local.Close()
		opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2}
		d := open(t, b, "a/ds.h5", Options{Fields: c.fields, Split: c.split})
		if !bytes.Equal(epoch(t, d, opts, 0), epoch(t, local, opts, 0)) || d.ID() != local.ID() {
			t.Errorf("%+v: other bytes than from the local file, or id %q instead of %q", c, d.ID(), local.ID())
		}
		st := d.Stats()
		t.Logf("%+v: %d of %d bytes", c, st.Fetched, len(data))
		if float64(st.Fetched) > c.most*float64(len(data)) || c.split == "" && !d.Complete() {
			t.Errorf("%+v: %d bytes were fetched of %d; complete %v", c, st.Fetched, len(data), d.Complete())
		}
		if c.fields != nil {
			continue
		}
		if err := d.Fill(t.Context()); err != nil || !d.Complete() {
			t.Errorf("complete %v, error %v", d.Complete(), err)
		}
		files, err := mmapds.Open(d.Path())
		if err != nil {
			t.Fatal("the mirror is not a dataset: ", err)
		}
		if v, err := verify.Dataset(t.Context(), files.Files(), verify.Options{}); err != nil || v.Corruptions > 0 {
			t.Errorf("%+v, %v", v, err)
		}
		files.Close()
	}
}

// A small file comes whole with its metadata.
func TestPackedHDF5(t *testing.T) {
	const path = "../../internal/hdf5/chunk/testdata/small-packed.h5"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	local, err := mmapds.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer local.Close()
	b := new(membucket.Memory)
	b.Put("p.h5", data)
	d := open(t, b, "p.h5", Options{})
	opts := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}}
	if !bytes.Equal(epoch(t, d, opts, 0), epoch(t, local, opts, 0)) {
		t.Error("other bytes than from the local file")
	}
}
