package flat

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// testSchema has a field of large records, one of small ones, and labels.
func testSchema() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 40, 50)
	images.Layout = tensor.CHW
	boxes := store.NewField("boxes", tensor.Float32, 8)
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "dog", "Jürgen"}
	return store.Schema{Fields: []store.Field{images, boxes, labels}}
}

// fillRecord makes the bytes of record i.
func fillRecord(r *store.Record, i int) {
	rng := rand.New(rand.NewPCG(uint64(i), 1))
	for k := range r.Values[0] {
		r.Values[0][k] = byte(rng.Uint32())
	}
	for k := range 8 {
		binary.LittleEndian.PutUint32(r.Values[1][4*k:], math.Float32bits(rng.Float32()*10-5))
	}
	binary.LittleEndian.PutUint64(r.Values[2], uint64(i%3))
}

// numbered makes a record of every number.
type numbered struct {
	schema store.Schema
	fill   func(r *store.Record, i int)
}

// add appends the records a to b.
func (x numbered) add(t testing.TB, w store.Writer, a, b int) {
	t.Helper()
	r := store.NewRecord(x.schema)
	for i := a; i < b; i++ {
		x.fill(r, i)
		require.NoError(t, w.Append(r))
	}
}

// write writes the records a to b and returns the manifest.
func (x numbered) write(t testing.TB, dest string, a, b int, opts Options, info store.Info) *store.Manifest {
	t.Helper()
	w, err := Create(dest, x.schema, opts)
	require.NoError(t, err)
	defer w.Close()
	x.add(t, w, a, b)
	m, err := w.Commit(info)
	require.NoError(t, err)
	return m
}

// buildFlat writes n records, every second one with its statistics.
func buildFlat(t testing.TB, dest string, n int, shardBytes int64) *store.Manifest {
	t.Helper()
	s := testSchema()
	records := numbered{s, func(r *store.Record, i int) {
		fillRecord(r, i)
		if i%2 == 0 {
			r.Summarize(s)
		}
	}}
	return records.write(t, dest, 0, n, Options{ShardBytes: shardBytes}, store.Info{Source: &store.SourceInfo{Kind: "test", Name: "x", Samples: int64(n)}})
}

// readAll returns a column's bytes as the extents say.
func readAll(t *testing.T, d *store.Dataset, column int) []byte {
	t.Helper()
	var all []byte
	for _, e := range layout.Of(d).Columns[column].Extents {
		data, err := os.ReadFile(e.Path)
		require.NoError(t, err)
		n := e.Count * int64(layout.Of(d).Columns[column].Spec.RecordBytes())
		all = append(all, data[e.Offset:e.Offset+n]...)
	}
	return all
}

func TestFlatRoundTrip(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	const n = 1100
	buildFlat(t, dest, n, 512*6000)
	d, err := store.OpenFlat(dest)
	require.NoError(t, err)
	if d.Records != n || len(layout.Of(d).Columns[0].Extents) != 3 {
		t.Fatalf("%d records in %d shards", d.Records, len(layout.Of(d).Columns[0].Extents))
	}
	if !reflect.DeepEqual(d.Schema, testSchema()) {
		t.Errorf("schema changed: %+v", d.Schema)
	}
	r := store.NewRecord(d.Schema)
	want := make([][]byte, 3)
	for i := range n {
		fillRecord(r, i)
		for k := range want {
			want[k] = append(want[k], r.Values[k]...)
		}
	}
	for k, f := range d.Schema.Fields {
		if !bytes.Equal(readAll(t, d, k), want[k]) {
			t.Errorf("field %s: other bytes than were written", f.Name)
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(dest))
	if len(entries) != 1 {
		t.Errorf("something is left next to the dataset: %v", entries)
	}
}

// A shard boundary must not show in identity or statistics, and full shards are whole pages.
func TestShardsDoNotChangeTheDataset(t *testing.T) {
	dir := t.TempDir()
	one := buildFlat(t, filepath.Join(dir, "one"), 1100, 1<<30)
	many := buildFlat(t, filepath.Join(dir, "many"), 1100, 1)
	if len(one.Shards) != 1 || len(many.Shards) != 3 {
		t.Fatalf("%d and %d shards", len(one.Shards), len(many.Shards))
	}
	if one.ID != many.ID || !reflect.DeepEqual(one.Statistics, many.Statistics) {
		t.Errorf("id %s, %s; statistics %v, %v", one.ID, many.ID, one.Statistics, many.Statistics)
	}
	for _, s := range many.Shards[:2] {
		for i, f := range testSchema().Fields {
			if (s.Files[2*i].Bytes-layout.HeaderBytes)%4096 != 0 {
				t.Errorf("%s of %d records is not whole pages", f.Name, s.Count)
			}
		}
	}
}

func TestSameRecordsSameBytes(t *testing.T) {
	dir := t.TempDir()
	buildFlat(t, filepath.Join(dir, "a"), 100, 0)
	buildFlat(t, filepath.Join(dir, "b"), 100, 0)
	for _, name := range []string{layout.ManifestName, "images-00000.npy", "images-00000.crc.npy", "boxes-00000.npy", "labels-00000.crc.npy"} {
		a, errA := os.ReadFile(filepath.Join(dir, "a", name))
		b, errB := os.ReadFile(filepath.Join(dir, "b", name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v)", name, errA, errB)
		}
	}
}

func TestChecksums(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	m := buildFlat(t, dest, 700, 1)
	for _, s := range m.Shards {
		for i, f := range m.Fields {
			data, err := os.ReadFile(filepath.Join(dest, s.Files[2*i].Name))
			require.NoError(t, err)
			sums, err := os.ReadFile(filepath.Join(dest, s.Files[2*i+1].Name))
			require.NoError(t, err)
			if got := layout.HexCRC(layout.CRC32C(data)); got != s.Files[2*i].CRC32C {
				t.Errorf("%s: whole file has %s, manifest %s", s.Files[2*i].Name, got, s.Files[2*i].CRC32C)
			}
			if got := layout.HexCRC(layout.CRC32C(sums)); got != s.Files[2*i+1].CRC32C {
				t.Errorf("%s: whole file has %s, manifest %s", s.Files[2*i+1].Name, got, s.Files[2*i+1].CRC32C)
			}
			step := int(layout.BlockRecords(f.RecordBytes())) * f.RecordBytes()
			for b, rest := 0, data[layout.HeaderBytes:]; len(rest) > 0; b++ {
				n := min(step, len(rest))
				if got := binary.LittleEndian.Uint32(sums[layout.HeaderBytes+4*b:]); got != layout.CRC32C(rest[:n]) {
					t.Errorf("%s: block %d: wrong checksum", s.Files[2*i].Name, b)
				}
				rest = rest[n:]
			}
		}
	}
}

func TestStatistics(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	m := buildFlat(t, dest, 50, 0)
	s := testSchema()
	r := store.NewRecord(s)
	var channels [3][]float64
	var boxes []float64
	for i := range 50 {
		fillRecord(r, i)
		for k, x := range r.Values[0] {
			channels[k/2000] = append(channels[k/2000], float64(x))
		}
		for k := range 8 {
			boxes = append(boxes, float64(math.Float32frombits(binary.LittleEndian.Uint32(r.Values[1][4*k:]))))
		}
	}
	for c, x := range channels {
		compareMoments(t, "channel", m.Statistics["images"].Channels[c], x)
	}
	compareMoments(t, "boxes", m.Statistics["boxes"].Moments, boxes)
	if got := m.Statistics["labels"].Labels; !reflect.DeepEqual(got, []int64{17, 17, 16}) {
		t.Errorf("label counts %v", got)
	}
}

func compareMoments(t *testing.T, what string, got store.Moments, x []float64) {
	t.Helper()
	want := store.Moments{Min: x[0], Max: x[0]}
	for _, v := range x {
		want.Min, want.Max = min(want.Min, v), max(want.Max, v)
		want.Mean += v / float64(len(x))
	}
	for _, v := range x {
		want.Std += (v - want.Mean) * (v - want.Mean) / float64(len(x))
	}
	want.Std = math.Sqrt(want.Std)
	if got.Min != want.Min || got.Max != want.Max || math.Abs(got.Mean-want.Mean) > 1e-9 || math.Abs(got.Std-want.Std) > 1e-9 {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func TestNonFiniteNumbersAreCountedApart(t *testing.T) {
	s := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float32, 4)}}
	l := write.NewManifestBuilder(s)
	r := store.NewRecord(s)
	for k, v := range []float32{1, float32(math.NaN()), 3, float32(math.Inf(1))} {
		binary.LittleEndian.PutUint32(r.Values[0][4*k:], math.Float32bits(v))
	}
	require.NoError(t, l.Add(r, make([]uint32, 1)))
	got := l.Manifest(store.Info{}).Statistics["x"].Moments
	if want := (store.Moments{Min: 1, Max: 3, Mean: 2, Std: 1, NonFinite: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLabelOutsideItsClasses(t *testing.T) {
	for _, c := range []struct {
		dtype tensor.DType
		value []byte
		want  string
	}{
		{tensor.Int64, []byte{3, 0, 0, 0, 0, 0, 0, 0}, "label 3, but there are 3 classes"},
		{tensor.Uint8, []byte{3}, "label 3, but there are 3 classes"},
		{tensor.Uint8, []byte{255}, "label 255, but there are 3 classes"},
		{tensor.Int8, []byte{255}, "label -1, but there are 3 classes"},
		{tensor.Int16, []byte{0, 128}, "label -32768, but there are 3 classes"},
		{tensor.Int32, []byte{2, 0, 0, 0}, ""},
		{tensor.Int32, []byte{2, 0, 0, 1}, "label 16777218, but there are 3 classes"},
		{tensor.Uint64, []byte{255, 255, 255, 255, 255, 255, 255, 255}, "label 18446744073709551615, but"},
	} {
		s := testSchema()
		s.Fields[2].DType, s.Fields[2].Storage = c.dtype, c.dtype.Descr()
		w, err := Create(filepath.Join(t.TempDir(), "ds"), s, Options{})
		require.NoError(t, err)
		r := store.NewRecord(s)
		copy(r.Values[2], c.value)
		if err := w.Append(r); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %s", c.value, err, c.want)
		}
		if _, err := w.Commit(store.Info{}); c.want != "" && err == nil {
			t.Error("Commit after a failed Append")
		}
		w.Close()
	}
}

// Labels of all integer types are counted, one for each record as any number of them.
func TestLabelsAreCounted(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Uint8, tensor.Int8, tensor.Uint16, tensor.Int16, tensor.Uint32, tensor.Int32, tensor.Uint64,
		tensor.Int64} {
		one, many := store.NewField("one", dtype), store.NewRagged("many", dtype)
		one.Classes, many.Classes = []string{"cat", "dog", "owl"}, []string{"cat", "dog", "owl"}
		schema := store.Schema{Fields: []store.Field{one, many}}
		w, err := Create(filepath.Join(t.TempDir(), "ds"), schema, Options{})
		require.NoError(t, err)
		defer w.Close()
		r, owl := store.NewRecord(schema), make([]byte, dtype.Size())
		owl[0] = 2
		for i := range 3 {
			r.Values[0], r.Values[1] = owl, bytes.Repeat(owl, i)
			require.NoError(t, w.Append(r))
		}
		m, err := w.Commit(store.Info{})
		require.NoError(t, err)
		for _, name := range []string{"one", "many"} {
			if got := m.Statistics[name].Labels; !slices.Equal(got, []int64{0, 0, 3}) {
				t.Errorf("%v, %s: %v", dtype, name, got)
			}
		}
	}
}

func TestNothingIsThereBeforeCommit(t *testing.T) {
	dir := t.TempDir()
	dest := filepath.Join(dir, "sub", "ds")
	s := testSchema()
	w, err := Create(dest, s, Options{})
	require.NoError(t, err)
	require.NoError(t, w.Append(store.NewRecord(s)))
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("destination exists before Commit: %v", err)
	}
	if _, err := Create(dest, s, Options{}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("second builder: %v", err)
	}
	require.NoError(t, w.Close())
	if err := w.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStageOfADeadProcessIsReused(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	old := filepath.Join(filepath.Dir(dest), ".ds.building")
	require.NoError(t, os.MkdirAll(filepath.Join(old, "folder"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(old, "images-00007.npy"), []byte("x"), 0o444))
	buildFlat(t, dest, 3, 0)
	if _, err := os.Lstat(filepath.Join(dest, "images-00007.npy")); err == nil {
		t.Error("a file of the dead build is in the dataset")
	}
}

func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	dest := filepath.Join(dir, "ds")
	first := buildFlat(t, dest, 3, 0)
	s := testSchema()
	if _, err := Create(dest, s, Options{}); !errors.Is(err, store.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	w, err := Create(dest, s, Options{Overwrite: true})
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, w.Append(store.NewRecord(s)))
	if d, err := store.OpenFlat(dest); err != nil || d.Manifest.ID != first.ID {
		t.Errorf("the old dataset is not there while the new one is built: %v", err)
	}
	second, err := w.Commit(store.Info{})
	require.NoError(t, err)
	if d, err := store.OpenFlat(dest); err != nil || d.Manifest.ID != second.ID || d.Records != 1 {
		t.Errorf("the new dataset is not there: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOverwriteSparesOtherFolders(t *testing.T) {
	dest := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dest, "thesis.txt"), []byte("x"), 0o666))
	if _, err := Create(dest, testSchema(), Options{Overwrite: true}); !errors.Is(err, store.ErrExist) {
		t.Errorf("got %v", err)
	}
}

func TestNoRecords(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "ds"), testSchema(), Options{})
	require.NoError(t, err)
	defer w.Close()
	if _, err := w.Commit(store.Info{}); err == nil || !strings.Contains(err.Error(), "no records") {
		t.Errorf("got %v", err)
	}
}

// Every file cut at every interesting place is an error of OpenFlat.
func TestTruncatedFiles(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	buildFlat(t, dest, 600, 1)
	entries, err := os.ReadDir(dest)
	require.NoError(t, err)
	for _, e := range entries {
		path := filepath.Join(dest, e.Name())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, n := range []int{0, 1, 10, 100, 4095, 4096, 4097, len(data) / 2, len(data) - 2} {
			if n >= len(data)-1 {
				continue
			}
			rewrite(t, path, data[:n])
			if _, err := store.OpenFlat(dest); err == nil {
				t.Errorf("%s cut to %d of %d bytes: opened", e.Name(), n, len(data))
			}
		}
		rewrite(t, path, data)
	}
	if _, err := store.OpenFlat(dest); err != nil {
		t.Fatal(err)
	}
}

func TestCorruptHeaderSaysWhere(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	buildFlat(t, dest, 10, 0)
	path := filepath.Join(dest, "images-00000.npy")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	rewrite(t, path, bytes.Replace(data, []byte("(10, 3, 40, 50)"), []byte("(10, 3, 50, 40)"), 1))
	_, err = store.OpenFlat(dest)
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "images-00000.npy: header at byte 0x") {
		t.Errorf("got %v", err)
	}
}

// rewrite replaces a read-only file.
func rewrite(t testing.TB, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, data, 0o444))
}

func TestNotADataset(t *testing.T) {
	if _, err := store.OpenFlat(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestHostileManifests(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	buildFlat(t, dest, 600, 1)
	good, err := os.ReadFile(filepath.Join(dest, layout.ManifestName))
	require.NoError(t, err)
	for name, change := range map[string]func(m *store.Manifest){
		"path":         func(m *store.Manifest) { m.Shards[0].Files[0].Name = "../../etc/passwd" },
		"size":         func(m *store.Manifest) { m.Shards[0].Files[0].Bytes = -1 },
		"gap":          func(m *store.Manifest) { m.Shards[1].First++ },
		"huge count":   func(m *store.Manifest) { m.Shards[1].Count = math.MaxInt64 },
		"records":      func(m *store.Manifest) { m.Records = math.MaxInt64 },
		"no records":   func(m *store.Manifest) { m.Records = 0 },
		"shape":        func(m *store.Manifest) { m.Fields[0].Shape = tensor.Shape{1 << 40, 1 << 40} },
		"negative":     func(m *store.Manifest) { m.Fields[0].Shape = tensor.Shape{-3, 40, 50} },
		"storage":      func(m *store.Manifest) { m.Fields[0].Storage = "|O" },
		"field twice":  func(m *store.Manifest) { m.Fields[1] = m.Fields[0] },
		"missing file": func(m *store.Manifest) { m.Shards[0].Files = m.Shards[0].Files[:3] },
		"no fields":    func(m *store.Manifest) { m.Fields = nil },
		"slash":        func(m *store.Manifest) { m.Fields[0].Name = "a/b" },
	} {
		m, err := store.DecodeManifest(good)
		require.NoError(t, err)
		change(m)
		text, err := m.Encode()
		require.NoError(t, err)
		if _, err := store.DecodeManifest(text); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
	newer := bytes.Replace(good, []byte(`"version": 1`), fmt.Appendf(nil, `"version": %d`, layout.FormatVersion+1), 1)
	if _, err := store.DecodeManifest(newer); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("newer version: got %v", err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	dest := filepath.Join(f.TempDir(), "ds")
	buildFlat(f, dest, 600, 1)
	good, err := os.ReadFile(filepath.Join(dest, layout.ManifestName))
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":"penstock","version":1,"records":1,"fields":[{"name":"x","dtype":"uint8","shape":[],"storage":"|u1"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(store.Manifest)
		if json.Unmarshal(data, m) != nil || m.Format != layout.FormatName || m.Version < 1 || m.Version > layout.FormatVersion || m.Validate() != nil {
			return
		}
		text, err := m.Encode()
		require.NoError(t, err)
		if again, err := store.DecodeManifest(text); err != nil || again.ID != m.ID {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}

// NumPy opens the files without penstock's code.
func TestNumPyReadsIt(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	buildFlat(t, dest, 10, 0)
	out := numpy(t, dest, `
import numpy, sys, zlib
for name in ("images", "boxes", "labels"):
    a = numpy.load(sys.argv[1] + "/" + name + "-00000.npy", mmap_mode="r")
    print(name, a.shape, a.dtype, zlib.crc32(a.tobytes()), a.ctypes.data % 4096)
`)
	d, err := store.OpenFlat(dest)
	require.NoError(t, err)
	var want strings.Builder
	for k, f := range d.Schema.Fields {
		shape := append(tensor.Shape{10}, f.Shape...)
		want.WriteString(f.Name + " " + shape.String() + " " + f.DType.String() + " " + ieee(readAll(t, d, k)) + " 0\n")
	}
	if out != want.String() {
		t.Errorf("NumPy read\n%swant\n%s", out, want.String())
	}
}

func TestOverwriteSparesDevices(t *testing.T) {
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Skipf("no null device at %s: %v", os.DevNull, err)
	}
	if _, err := Create(os.DevNull, testSchema(), Options{Overwrite: true}); !errors.Is(err, store.ErrExist) {
		t.Errorf("got %v", err)
	}
}
