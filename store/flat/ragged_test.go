package flat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// raggedSchema has tokens, boxes, text, class sets, a field that is always empty, and labels of one
// length.
func raggedSchema() store.Schema {
	text := store.NewRagged("text", tensor.Uint8)
	text.Content = tensor.Text
	tags := store.NewRagged("tags", tensor.Int64)
	tags.Classes = []string{"red", "green", "blue"}
	return store.Schema{Fields: []store.Field{
		store.NewRagged("tokens", tensor.Int32), store.NewRagged("boxes", tensor.Float32, 4), text, tags,
		store.NewRagged("nothing", tensor.Float64), store.NewField("labels", tensor.Int64),
	}}
}

// fillRagged makes record i; every seventh has nothing in its ragged fields.
func fillRagged(r *store.Record, i int) {
	for k := range 5 {
		r.Values[k] = r.Values[k][:0]
	}
	binary.LittleEndian.PutUint64(r.Values[5], uint64(i))
	if i%7 == 3 {
		return
	}
	for k := range i * 37 % 101 {
		r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(i*1000+k))
	}
	for k := range i % 3 * 4 {
		r.Values[1] = binary.LittleEndian.AppendUint32(r.Values[1], math.Float32bits(float32(i)+float32(k)/8))
	}
	r.Values[2] = append(r.Values[2], fmt.Sprintf("Säule %d", i)...)
	for k := range i % 3 {
		r.Values[3] = binary.LittleEndian.AppendUint64(r.Values[3], uint64(k))
	}
}

func buildRagged(t testing.TB, dest string, n int, shardBytes int64) *store.Manifest {
	t.Helper()
	return numbered{raggedSchema(), fillRagged}.write(t, dest, 0, n, Options{ShardBytes: shardBytes}, store.Info{})
}

func TestRaggedRoundTrip(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	const n = 1200
	buildRagged(t, dest, n, 40000)
	d, err := store.OpenFlat(dest)
	require.NoError(t, err)
	if !reflect.DeepEqual(d.Schema, raggedSchema()) || len(layout.Of(d).Columns) != 11 || len(layout.Of(d).Columns[0].Extents) < 2 {
		t.Fatalf("%d columns, %d shards of %+v", len(layout.Of(d).Columns), len(layout.Of(d).Columns[0].Extents), d.Schema)
	}
	r := store.NewRecord(d.Schema)
	for field := range 5 {
		values, offsets := readAll(t, d, 2*field), readAll(t, d, 2*field+1)
		at := 0
		for i := range n {
			if e := layout.Of(d).Columns[2*field+1].Extents; at/8 == int(e[0].Count-1) && i > 0 && len(e) > 1 && i == int(e[0].Count-1) {
				offsets = offsets[8:] // the end of the first shard
			}
			fillRagged(r, i)
			want := r.Values[field]
			if !bytes.HasPrefix(values, want) {
				t.Fatalf("field %d: record %d: wrong bytes", field, i)
			}
			values = values[len(want):]
			at += 8
		}
		if len(values) > 0 {
			t.Errorf("field %d: %d bytes too many", field, len(values))
		}
	}
	for _, k := range []int{0, 1, 10} {
		if got, want := layout.Of(d).Columns[k].Rows, map[int]int64{0: d.Bytes(), 1: n + int64(len(layout.Of(d).Columns[1].Extents)), 10: n}[k]; k > 0 && got != want {
			t.Errorf("column %s has %d rows, want %d", layout.Of(d).Columns[k].Name, got, want)
		}
	}
}

// How records are spread over shards shows neither in identity nor in statistics, and a
// shard of a fixed field is whole pages.
func TestRaggedShards(t *testing.T) {
	dir := t.TempDir()
	one := buildRagged(t, filepath.Join(dir, "one"), 2000, 1<<30)
	many := buildRagged(t, filepath.Join(dir, "many"), 2000, 1)
	if len(one.Shards) != 1 || len(many.Shards) != 4 {
		t.Fatalf("%d and %d shards", len(one.Shards), len(many.Shards))
	}
	if one.ID != many.ID || !reflect.DeepEqual(one.Statistics, many.Statistics) || !bytes.Equal(one.BuilderState, many.BuilderState) {
		t.Error("identity or statistics differ")
	}
	for _, s := range many.Shards[:3] {
		if s.Count != 512 {
			t.Errorf("a shard has %d records: labels are not whole pages", s.Count)
		}
	}
}

// Only ragged fields: shards end at their size in bytes, whatever the number of records.
func TestRaggedShardBytes(t *testing.T) {
	s := store.Schema{Fields: []store.Field{store.NewRagged("x", tensor.Uint8)}}
	w, err := Create(filepath.Join(t.TempDir(), "ds"), s, Options{ShardBytes: 1000})
	require.NoError(t, err)
	defer w.Close()
	r := store.NewRecord(s)
	for range 10 {
		r.Values[0] = append(r.Values[0][:0], make([]byte, 400)...)
		require.NoError(t, w.Append(r))
	}
	m, err := w.Commit(store.Info{})
	require.NoError(t, err)
	if len(m.Shards) != 4 || m.Shards[0].Count != 3 || m.Shards[0].Files[0].Rows != 1200 {
		t.Errorf("shards %+v", m.Shards)
	}
}

func TestRaggedStatistics(t *testing.T) {
	m := buildRagged(t, filepath.Join(t.TempDir(), "ds"), 100, 0)
	r := store.NewRecord(m.Schema())
	var tokens, lengths []float64
	labels := make([]int64, 3)
	for i := range 100 {
		fillRagged(r, i)
		lengths = append(lengths, float64(len(r.Values[0])/4))
		for b := r.Values[0]; len(b) > 0; b = b[4:] {
			tokens = append(tokens, float64(binary.LittleEndian.Uint32(b)))
		}
		for b := r.Values[3]; len(b) > 0; b = b[8:] {
			labels[b[0]]++
		}
	}
	compareMoments(t, "tokens", m.Statistics["tokens"].Moments, tokens)
	compareMoments(t, "lengths", *m.Statistics["tokens"].Lengths, lengths)
	if got := m.Statistics["tags"].Labels; !reflect.DeepEqual(got, labels) {
		t.Errorf("tags: counts %v, want %v", got, labels)
	}
	if got := m.Statistics["nothing"]; got.Moments != (store.Moments{}) || *got.Lengths != (store.Moments{}) {
		t.Errorf("nothing: %+v", got)
	}
}

func TestRaggedSchemas(t *testing.T) {
	text := store.NewRagged("x", tensor.Uint8)
	text.Content = "latin-1"
	numbers := store.NewRagged("x", tensor.Int32)
	numbers.Content = tensor.Text
	fixed := store.NewField("x", tensor.Uint8, 10)
	fixed.Content = tensor.Image
	for _, f := range []store.Field{text, numbers, fixed} {
		if err := (store.Schema{Fields: []store.Field{f}}).Validate(); err == nil || !strings.Contains(err.Error(), "content") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("half a row was taken")
		}
	}()
	s := store.Schema{Fields: []store.Field{store.NewRagged("x", tensor.Int32)}}
	r := store.NewRecord(s)
	r.Values[0] = make([]byte, 6)
	_ = write.NewManifestBuilder(s).Add(r, make([]uint32, 1))
}

func TestAppendAllocatesNothing(t *testing.T) {
	for name, s := range map[string]store.Schema{"fixed": testSchema(), "ragged": tokenSchema()} {
		w, err := Create(filepath.Join(t.TempDir(), "ds"), s, Options{})
		require.NoError(t, err)
		r := store.NewRecord(s)
		i := 0
		add := func() {
			if name == "ragged" {
				fillTokens(r, i)
			}
			i++
			require.NoError(t, w.Append(r))
		}
		for range 3000 {
			add()
		}
		if n := testing.AllocsPerRun(1000, add); n >= 0.1 {
			t.Errorf("%s: %v allocations a record", name, n)
		}
		require.NoError(t, w.Close())
	}
}

func TestNumPyReadsRagged(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	buildRagged(t, dest, 1100, 1)
	out := numpy(t, dest, `
import json, numpy as np, sys
ds = sys.argv[1]
m = json.load(open(ds + "/manifest.json"))
def load(name, j):
    return np.load(f"{ds}/{name}-{j:05d}.npy", mmap_mode="r")
for name in ("tokens", "boxes", "text", "tags", "nothing"):
    for j, s in enumerate(m["shards"]):
        values, offsets = load(name + ".values", j), load(name + ".offsets", j)
        assert len(offsets) == s["count"] + 1 and offsets[0] == 0 and offsets[-1] == len(values), name
        load(name + ".values", j).shape, np.load(f"{ds}/{name}.values-{j:05d}.crc.npy", mmap_mode="r")
        for k in (0, 5, s["count"] - 1):
            v = values[offsets[k]:offsets[k + 1]]
            print(name, s["first"] + k, v.dtype, v.shape[1:], v.tobytes().hex())
`)
	r := store.NewRecord(raggedSchema())
	var want strings.Builder
	for k, f := range raggedSchema().Fields[:5] {
		for _, s := range []struct{ first, count int }{{0, 512}, {512, 512}, {1024, 76}} {
			for _, i := range []int{0, 5, s.count - 1} {
				fillRagged(r, s.first+i)
				fmt.Fprintf(&want, "%s %d %v %v %x\n", f.Name, s.first+i, f.DType, f.Shape, r.Values[k])
			}
		}
	}
	if out != want.String() {
		t.Errorf("NumPy read\n%.3000swant\n%.3000s", out, want.String())
	}
}

// Numbers whose moments a float64 cannot hold must not make a manifest impossible.
func TestHugeNumbers(t *testing.T) {
	const big = math.MaxFloat64
	for name, c := range map[string]struct {
		values []float64
		want   store.Moments
	}{
		"large":  {[]float64{big, big, big, big}, store.Moments{Min: big, Max: big, Mean: big}},
		"apart":  {[]float64{-big, big}, store.Moments{Min: -big, Max: big, Std: big}},
		"1e200":  {[]float64{0, 1e200}, store.Moments{Max: 1e200, Mean: 5e199, Std: big}},
		"normal": {[]float64{1, 3}, store.Moments{Min: 1, Max: 3, Mean: 2, Std: 1}},
	} {
		s := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float64), store.NewField("all", tensor.Float64, len(c.values))}}
		l := write.NewManifestBuilder(s)
		r := store.NewRecord(s)
		for i, x := range c.values {
			binary.LittleEndian.PutUint64(r.Values[1][8*i:], math.Float64bits(x))
		}
		for _, x := range c.values {
			binary.LittleEndian.PutUint64(r.Values[0], math.Float64bits(x))
			require.NoError(t, l.Add(r, make([]uint32, 2)))
		}
		m := l.Manifest(store.Info{})
		if got := m.Statistics["x"].Moments; got != c.want {
			t.Errorf("%s: a record each: %+v, want %+v", name, got, c.want)
		}
		got := m.Statistics["all"].Moments
		if math.Abs(got.Mean-c.want.Mean) > math.Abs(c.want.Mean)*1e-12 || got.Min != c.want.Min || got.Max != c.want.Max {
			t.Errorf("%s: in one record: %+v, want %+v", name, got, c.want)
		}
		if _, err := m.Encode(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryByteOfAManifestCounts(t *testing.T) {
	m := buildFlat(t, filepath.Join(t.TempDir(), "ds"), 20, 0)
	good, err := m.Encode()
	require.NoError(t, err)
	if again, err := store.DecodeManifest(good); err != nil || !reflect.DeepEqual(again, m) {
		t.Fatalf("what was written is not what is read: %v", err)
	}
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= []byte{1, 0x20, 0x80, 4}[at%4]
		if _, err := store.DecodeManifest(bad); err == nil {
			t.Fatalf("byte %d, %q changed to %q: no error", at, good[at], bad[at])
		}
		if _, err := store.DecodeManifest(good[:at]); at%9 == 0 && err == nil {
			t.Fatalf("cut to %d bytes: no error", at)
		}
	}
}
