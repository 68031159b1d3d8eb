package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/corruption"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// packedSchema has fields that compress: images, measurements, numbers of two bytes, ragged rows,
// an empty ragged field, and labels, which are too few bytes to compress.
func packedSchema() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 20, 20)
	images.Layout = tensor.CHW
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"a", "b", "c"}
	return store.Schema{Fields: []store.Field{
		images, store.NewField("waves", tensor.Float32, 300), store.NewField("half", tensor.Float16, 11, 9),
		store.NewField("flags", tensor.Bool, 150), store.NewField("wide", tensor.Float64, 40), labels,
		store.NewRagged("tokens", tensor.Int32), store.NewRagged("boxes", tensor.BFloat16, 4), store.NewRagged("nothing", tensor.Float64),
	}}
}

func fillPacked(s store.Schema, r *store.Record, i int) {
	for k := range r.Values[0] {
		r.Values[0][k] = byte(i + k/7%50)
	}
	for k := range 300 {
		binary.LittleEndian.PutUint32(r.Values[1][4*k:], math.Float32bits(100+float32(math.Sin(float64(i*300+k)/40))))
	}
	for k := range 99 {
		binary.LittleEndian.PutUint16(r.Values[2][2*k:], uint16(tensor.HalfOf(float32(k%13))))
	}
	for k := range r.Values[3] {
		r.Values[3][k] = byte(k * i / 9 % 2)
	}
	for k := range 40 {
		binary.LittleEndian.PutUint64(r.Values[4][8*k:], math.Float64bits(float64(i)+float64(k)/8))
	}
	binary.LittleEndian.PutUint64(r.Values[5], uint64(i%3))
	r.Values[6], r.Values[7], r.Values[8] = r.Values[6][:0], r.Values[7][:0], r.Values[8][:0]
	for k := range i * 31 % 257 {
		r.Values[6] = binary.LittleEndian.AppendUint32(r.Values[6], uint32(i+k%9))
	}
	for k := range i % 5 * 80 {
		r.Values[7] = binary.LittleEndian.AppendUint16(r.Values[7], uint16(tensor.BrainOf(float32(k))))
	}
}

// buildPacked writes records a to b.
func buildPacked(t testing.TB, path string, a, b int, opts Options) *store.Manifest {
	t.Helper()
	s := packedSchema()
	return numbered{s, func(r *store.Record, i int) {
		fillPacked(s, r, i)
		if opts.Splits != nil {
			r.Split = trainOrVal(i)
		}
	}}.write(t, path, a, b, opts, store.Info{})
}

// compressions are those that the tests go through.
var compressions = map[string]Compression{
	"auto":    {},
	"plain":   {Level: 4, Shuffle: ShuffleOff, ChunkRecords: 7},
	"shuffle": {Level: 1, Shuffle: ShuffleOn, ChunkBytes: 5000},
	"large":   {Level: 6, ChunkRecords: 1 << 40},
}

func compressed(c Compression) Options { return Options{Compress: &c} }

// A compressed dataset has the id and the records of one that is not, and is whole.
func TestCompressed(t *testing.T) { eachContainer(t, testCompressed) }

func testCompressed(t *testing.T) {
	const n = 211
	dir := t.TempDir()
	plain := buildPacked(t, filepath.Join(dir, "all.h5"), 0, n, Options{})
	want, err := corruption.ContentOf(filepath.Join(dir, "all.h5"))
	require.NoError(t, err)
	for name, c := range compressions {
		path := filepath.Join(dir, name+".h5")
		var notes []string
		reported := int64(0)
		opts := compressed(c)
		opts.Note = func(text string) { notes = append(notes, text) }
		opts.Progress = func(n int64) error {
			reported += n
			return nil
		}
		m := buildPacked(t, path, 0, n, opts)
		if m.ID != plain.ID {
			t.Errorf("%s: another id", name)
		}
		d := checkWhole(t, name, path, want)
		checkStorage(t, name, path, d, c)
		if len(notes) != len(m.Storage) || len(notes) < 5 || !strings.Contains(strings.Join(notes, "\n"), "expected to become 0.") {
			t.Errorf("%s: notes %q", name, notes)
		}
		packed := int64(0)
		for _, s := range m.Storage {
			packed += s.Bytes
		}
		if reported != packed {
			t.Errorf("%s: reported %d bytes of %d", name, reported, packed)
		}
	}
}

// checkWhole reads and verifies a file whose checksums must cover all records.
func checkWhole(t *testing.T, name, path string, want corruption.Content) *store.Dataset {
	t.Helper()
	if got, err := corruption.ContentOf(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: other records, error %v", name, err)
	}
	d, err := store.Open(path, store.OpenOptions{})
	require.NoError(t, err)
	if v, err := verify.Dataset(t.Context(), d, verify.Options{}); err != nil || v.Corruptions != 0 || !v.Identity || v.Bytes != d.Bytes() || len(v.Unchecked) > 0 {
		t.Errorf("%s: %+v, error %v", name, v, err)
	}
	return d
}

// checkStorage compares what the manifest says with the file.
func checkStorage(t *testing.T, name, path string, d *store.Dataset, c Compression) {
	t.Helper()
	b := read(t, path)
	f, err := meta.Open(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	for _, column := range layout.Of(d).Columns {
		s := d.Manifest.Storage[column.Name]
		if (s != nil) != column.Packed || column.Packed == (column.Name == "labels" || column.Part == layout.Offsets || column.Rows == 0) {
			t.Errorf("%s: %s: packed %v, storage %+v", name, column.Name, column.Packed, s)
		}
		if s == nil {
			continue
		}
		data, err := f.Dataset(column.Path())
		require.NoError(t, err)
		table, err := data.Chunks()
		require.NoError(t, err)
		stored := int64(0)
		for _, chunk := range table.Chunks {
			stored += chunk.Size
		}
		shuffled := len(data.Filters) == 2
		if s.Stored != stored || s.ChunkRows != data.Layout.ChunkDims[0] || s.Shuffle != shuffled || s.Bytes != column.Rows*int64(column.Spec.RecordBytes()) || s.Stored >= s.Bytes {
			t.Errorf("%s: %s: %+v, but the file has %d bytes, chunks %v, filters %v", name, column.Name, s, stored, data.Layout.ChunkDims, data.Filters)
		}
		if c.Level > 0 && s.Level != c.Level || c.Shuffle == ShuffleOff && s.Shuffle || c.Shuffle == ShuffleOn && s.Shuffle != (column.Spec.DType.Size() > 1) {
			t.Errorf("%s: %s: %+v", name, column.Name, s)
		}
		if column.Part == layout.Whole && c.ChunkRecords > 0 && s.ChunkRows != min(c.ChunkRecords, column.Rows) {
			t.Errorf("%s: %s: %+v", name, column.Name, s)
		}
	}
}

// The file does not depend on the number of workers, nor on whether the number of records was known.
func TestCompressedIsDeterministic(t *testing.T) {
	dir := t.TempDir()
	for name, c := range compressions {
		var want []byte
		for workers := range 3 {
			path := filepath.Join(dir, fmt.Sprint(name, workers, ".h5"))
			opts := compressed(c)
			opts.Workers = workers
			if workers%2 == 1 {
				opts.Records = 100
			}
			buildPacked(t, path, 0, 100, opts)
			got := read(t, path)
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: other bytes with %d workers", name, workers)
			}
		}
	}
}

// The loader's batches are those of the uncompressed file.
func TestLoadCompressed(t *testing.T) {
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "plain.h5"), filepath.Join(dir, "packed.h5")
	buildPacked(t, plain, 0, 150, Options{})
	buildPacked(t, packed, 0, 150, compressed(compressions["plain"]))
	want := batches(t, plain, 1)
	for _, workers := range []int{1, 3} {
		if got := batches(t, packed, workers); !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: other batches", workers)
		}
	}
}

// batches loads two shuffled epochs.
func batches(t *testing.T, path string, workers int) (out [][]byte) {
	t.Helper()
	ds, err := mmapds.Open(path, mmapds.WithVerify(mmapds.VerifyFirstTouch))
	require.NoError(t, err)
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Seed: 5, Workers: workers})
	require.NoError(t, err)
	defer ld.Close()
	for epoch := range 2 {
		for b, err := range ld.Epoch(t.Context(), epoch) {
			require.NoError(t, err)
			for _, f := range ds.Specs() {
				out = append(out, bytes.Clone(b.Field(f.Name).Bytes()))
				if f.Ragged {
					out = append(out, fmt.Append(nil, b.Offsets(f.Name)))
				}
			}
		}
	}
	return out
}

// In splits, every record is where the uncompressed file has it; chunks go over their ends.
func TestCompressedSplits(t *testing.T) { eachContainer(t, testCompressedSplits) }

func testCompressedSplits(t *testing.T) {
	const n = 90
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "plain.h5"), filepath.Join(dir, "packed.h5")
	a := buildPacked(t, plain, 0, n, Options{Splits: trainVal})
	opts := compressed(compressions["plain"])
	opts.Splits = trainVal
	b := buildPacked(t, packed, 0, n, opts)
	if a.ID != b.ID {
		t.Error("another id")
	}
	for _, split := range append([]string{""}, trainVal...) {
		for _, checks := range []mmapds.VerifyMode{mmapds.VerifyOff, mmapds.VerifyFirstTouch, mmapds.VerifyAlways} {
			if got, want := gathered(t, packed, split, checks), gathered(t, plain, split, mmapds.VerifyOff); !reflect.DeepEqual(got, want) {
				t.Errorf("split %q, %v: other records", split, checks)
			}
		}
	}
}

// gathered reads records of a split in an order of its own, one of them twice.
func gathered(t *testing.T, path, split string, checks mmapds.VerifyMode) (out [][]byte) {
	t.Helper()
	ds, err := mmapds.Open(path, mmapds.WithSplit(split), mmapds.WithVerify(checks))
	require.NoError(t, err)
	defer ds.Close()
	indices := []int{ds.Len() - 1, 0, 7 % ds.Len(), 3, 3, ds.Len() / 2}
	for _, f := range ds.Specs() {
		if !f.Ragged {
			dst := make([]byte, len(indices)*f.RecordBytes())
			require.NoError(t, ds.Gather(t.Context(), f.Name, indices, dst))
			v, err := ds.Slice(f.Name, 1, ds.Len()-1)
			require.NoError(t, err)
			out = append(out, dst, bytes.Clone(v.Bytes()))
			continue
		}
		offsets := make([]int64, len(indices)+1)
		dst, err := ds.GatherRagged(t.Context(), f.Name, indices, offsets, nil)
		require.NoError(t, err)
		all := make([]int64, ds.Len()+1)
		v, err := ds.SliceRagged(f.Name, 0, ds.Len(), all)
		require.NoError(t, err)
		out = append(out, dst, bytes.Clone(v.Bytes()), fmt.Append(nil, offsets, all))
	}
	return out
}

// An append continues like the file: the id is that of all at once, and whole chunks stay.
func TestCompressedAppend(t *testing.T) { eachContainer(t, testCompressedAppend) }

func testCompressedAppend(t *testing.T) {
	dir := t.TempDir()
	all := buildPacked(t, filepath.Join(dir, "all.h5"), 0, 120, Options{})
	want, err := corruption.ContentOf(filepath.Join(dir, "all.h5"))
	require.NoError(t, err)
	for name, c := range compressions {
		path := filepath.Join(dir, name+".h5")
		first := buildPacked(t, path, 0, 50, compressed(c))
		for at := 50; at < 120; at += 35 {
			m := buildPacked(t, path, at, at+35, Options{Append: true})
			for array, s := range m.Storage {
				was := first.Storage[array]
				if s.Level != was.Level || s.Shuffle != was.Shuffle || s.Reason != was.Reason || s.ChunkRows < was.ChunkRows || s.Bytes <= was.Bytes {
					t.Errorf("%s: %s: %+v, was %+v", name, array, s, was)
				}
			}
			if len(m.Storage) != len(first.Storage) {
				t.Errorf("%s: %d arrays are compressed, were %d", name, len(m.Storage), len(first.Storage))
			}
			if at == 85 && m.ID != all.ID {
				t.Errorf("%s: another id", name)
			}
		}
		checkWhole(t, name, path, want)
	}
	_, err = Create(filepath.Join(dir, "auto.h5"), packedSchema(), Options{Append: true, Compress: new(Compression)})
	if err == nil || !strings.Contains(err.Error(), "leave --compress out") {
		t.Errorf("got %v", err)
	}
}

// An error of Progress ends Commit, and the build can be resumed with what was appended.
func TestCompressedStopped(t *testing.T) { eachContainer(t, testCompressedStopped) }

func testCompressedStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	opts := compressed(compressions["plain"])
	opts.Journal = &store.Journal{Resume: true}
	stop := errors.New("stop")
	opts.Progress = func(int64) error { return stop }
	s := packedSchema()
	w, err := Create(path, s, opts)
	require.NoError(t, err)
	defer w.Close()
	r := store.NewRecord(s)
	for i := range 100 {
		fillPacked(s, r, i)
		require.NoError(t, w.Append(r))
	}
	require.NoError(t, w.Checkpoint(nil))
	if _, err := w.Commit(store.Info{}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	require.NoError(t, w.Close())
	opts.Progress = nil
	if w, err = Create(path, s, opts); err != nil || w.Kept().Records != 100 {
		t.Fatalf("%v, error %v", w, err)
	}
	defer w.Close()
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "x.h5")
	buildPacked(t, whole, 0, 100, compressed(compressions["plain"]))
	if !bytes.Equal(read(t, path), read(t, whole)) {
		t.Error("other bytes than those of a build that was not stopped")
	}
}

func TestCompressionErrors(t *testing.T) {
	for _, c := range []Compression{{Level: 10}, {Level: -1}, {ChunkRecords: -1}, {ChunkBytes: -1}, {ChunkRecords: 1, ChunkBytes: 1}, {Shuffle: 3}} {
		path := filepath.Join(t.TempDir(), "x.h5")
		if _, err := Create(path, packedSchema(), compressed(c)); err == nil {
			t.Errorf("%+v: no error", c)
		}
		if left := entries(t, filepath.Dir(path)); len(left) > 0 {
			t.Errorf("%+v: left %v", c, left)
		}
	}
}

// The error of a flipped byte in a chunk names its field, records, chunk and place.
func TestVerifyNamesChunk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	buildPacked(t, path, 0, 60, compressed(compressions["plain"]))
	b := read(t, path)
	f, err := meta.Open(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	for _, name := range []string{"images", "waves", "tokens/values"} {
		data, err := f.Dataset("/" + name)
		require.NoError(t, err)
		table, err := data.Chunks()
		require.NoError(t, err)
		chunk := table.Chunks[len(table.Chunks)/2] // of waves it is one that did not become smaller
		bad := bytes.Clone(b)
		bad[chunk.Offset+chunk.Size/2] ^= 0x10
		badPath := path + ".bad.h5"
		require.NoError(t, os.WriteFile(badPath, bad, 0o666))
		d, err := store.Open(badPath, store.OpenOptions{})
		require.NoError(t, err)
		var corruptions []*store.CorruptionError
		v, err := verify.Dataset(t.Context(), d, verify.Options{Corrupt: func(d *store.CorruptionError) { corruptions = append(corruptions, d) }})
		if err != nil || v.Corruptions != 1 || len(corruptions) != 1 {
			t.Fatalf("%s: %+v, error %v", name, v, err)
		}
		x := corruptions[0]
		if x.Field != strings.TrimSuffix(name, "/values") || chunk.Mask == 0 && x.Offset != chunk.Offset || x.Offset > chunk.Offset {
			t.Errorf("%s: chunk at %d: %+v", name, chunk.Offset, x)
		}
		if name == "images" && (x.First > chunk.Coord[0] || x.Last < chunk.Coord[0]) {
			t.Errorf("%s: chunk of record %d: %+v", name, chunk.Coord[0], x)
		}
	}
}
