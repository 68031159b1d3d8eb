package loader_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// words is a memory with a further field "t" of variable length: record i has i*i%7 rows, the
// numbers i*100, i*100+1, ...
type words struct {
	*memory
	all  []byte
	ends []int64
	bad  int // record that fails; -1 is none
}

var errWord = errors.New("unreadable word")

func newWords(n int) *words {
	w := &words{memory: newMemorySource(n, 4), ends: []int64{0}, bad: -1}
	w.specs = append(w.specs, tensor.Spec{Name: "t", DType: tensor.Int32, Ragged: true})
	for i := range n {
		for _, v := range wordsOf(i) {
			w.all = binary.LittleEndian.AppendUint32(w.all, uint32(v))
		}
		w.ends = append(w.ends, int64(len(w.all)/4))
	}
	w.data = append(w.data, w.all)
	return w
}

func wordsOf(record int) (out []int32) {
	for k := range record * record % 7 {
		out = append(out, int32(record*100+k))
	}
	return out
}

func (w *words) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	for i := a; i <= b; i++ {
		offsets[i-a] = w.ends[i] - w.ends[a]
		if i < b && i == w.bad {
			return tensor.View{}, errWord
		}
	}
	return tensor.Of(w.specs[2], int(offsets[b-a]), w.all[w.ends[a]*4:w.ends[b]*4]), nil
}

func (w *words) Lengths(_ context.Context, _ string, indices []int, offsets []int64) error {
	offsets[0] = 0
	for i, r := range indices {
		offsets[i+1] = offsets[i] + w.ends[r+1] - w.ends[r]
	}
	return nil
}

func (w *words) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	dst = dst[:0]
	for _, r := range indices {
		if r == w.bad {
			return dst, errWord
		}
		dst = append(dst, w.all[w.ends[r]*4:w.ends[r+1]*4]...)
	}
	return dst, w.Lengths(ctx, field, indices, offsets)
}

// lengthless is a words whose offsets cannot be read.
type lengthless struct{ *words }

func (lengthless) Lengths(context.Context, string, []int, []int64) error { return errWord }

func openWords(t testing.TB, src loader.Source, o loader.Options) *loader.Loader {
	t.Helper()
	ld, err := loader.New(src, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ld.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return ld
}

// checkWords fails the test unless field t is that of the batch's records.
func checkWords(t testing.TB, b loader.Batch) {
	t.Helper()
	values, ends := tensor.As[int32](b.Field("t")), b.Offsets("t")
	if len(ends) != b.Len()+1 || ends[0] != 0 || int(ends[b.Len()]) != len(values) || b.Field("t").Len() != len(values) {
		t.Fatalf("batch %d: offsets %v for %d values of %d records", b.Step(), ends, len(values), b.Len())
	}
	for i, r := range b.Indices() {
		if got := values[ends[i]:ends[i+1]]; !slices.Equal(got, wordsOf(r)) {
			t.Fatalf("batch %d: record %d: %v", b.Step(), r, got)
		}
	}
}

func TestRaggedBatches(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		for _, workers := range []int{loader.Synchronous, 1, 3} {
			w := newWords(500)
			ld := openWords(t, w, loader.Options{BatchSize: 16, Sampler: order, Workers: workers})
			records := 0
			for b, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				checkBatch(t, b)
				checkWords(t, b)
				records += b.Len()
				mustPanic(t, "no field x of variable length", func() { b.Offsets("x") })
			}
			st := ld.Stats()
			if bytes := int64(500*12 + len(w.all)); records != 500 || st.ViewBytes+st.CopiedBytes != bytes || (st.CopiedBytes == 0) != (order == sampler.Sequential{}) {
				t.Errorf("%T: %d records, %+v", order, records, st)
			}
			if held := w.held.Load(); held != 0 {
				t.Errorf("%d leases are left", held)
			}
		}
	}
}

func TestRaggedAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checked builds record where a batch is kept")
	}
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		for _, tf := range []map[string]loader.Transform{nil, {"t": loader.Pad{Length: 5}}} {
			ld := openWords(t, newWords(22_000), loader.Options{BatchSize: 4, Workers: 1, Sampler: order, Transforms: tf})
			next, stop := pull(ld)
			for range 100 { // values grow to the largest batch
				next(t)
			}
			if got := testing.AllocsPerRun(5000, func() { next(t) }); got != 0 {
				t.Errorf("%T, %v: %v allocations a batch", order, tf, got)
			}
			stop()
		}
	}
}

func TestPad(t *testing.T) {
	for _, nowhere := range []bool{false, true} {
		w := newWords(100)
		w.nowhere = nowhere
		ld := openWords(t, w, loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Workers: 2, Transforms: map[string]loader.Transform{"t": loader.Pad{Length: 3, Value: -7}}})
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			values, ends := tensor.As[int32](b.Field("t")), b.Offsets("t")
			for i, r := range b.Indices() {
				stored := wordsOf(r)
				want := append(slices.Clone(stored), -7, -7, -7)[:3]
				if got := values[i*3 : i*3+3]; !slices.Equal(got, want) || int(ends[i+1]-ends[i]) != len(stored) {
					t.Fatalf("record %d: %v of %d rows; want %v of %d", r, got, ends[i+1]-ends[i], want, len(stored))
				}
			}
		}
	}
}

func TestPadValues(t *testing.T) {
	for _, c := range []struct {
		dt    tensor.DType
		value float64
		want  string // bytes in hex; empty if it is refused
	}{
		{tensor.Uint8, 255, "ff"}, {tensor.Uint8, 256, ""}, {tensor.Uint8, -1, ""}, {tensor.Int8, -128, "80"}, {tensor.Int8, 128, ""},
		{tensor.Bool, 1, "01"}, {tensor.Bool, 2, ""}, {tensor.Int64, -100, "9cffffffffffffff"}, {tensor.Int32, 0.5, ""}, {tensor.Uint64, 3, "0300000000000000"},
		{tensor.Float32, 0.5, "0000003f"}, {tensor.Float32, 0.1, ""}, {tensor.Float64, 0.1, "9a9999999999b93f"}, {tensor.Float16, -1, "00bc"},
		{tensor.BFloat16, 1, "803f"}, {tensor.BFloat16, 257, ""}, {tensor.Float32, math.Inf(-1), "000080ff"}, {tensor.Int16, -2, "feff"}, {tensor.Uint32, math.NaN(), ""},
	} {
		p := loader.Pad{Length: 2, Value: c.value}
		spec := tensor.Spec{Name: "t", DType: c.dt, Ragged: true, Shape: tensor.Shape{2}}
		out, err := p.Output(spec)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "is not a number that "+c.dt.String()+" holds") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || out.Shape.String() != "(2, 2)" || out.Ragged {
			t.Fatalf("%+v: %v, %v", c, out, err)
		}
		f, err := p.Worker(spec, 0)
		require.NoError(t, err)
		dst := make([]byte, out.RecordBytes())
		if err := f(dst, nil, loader.Record{}); err != nil || fmt.Sprintf("%x", dst) != strings.Repeat(c.want, 4) {
			t.Errorf("%+v: % x, %v", c, dst, err)
		}
	}
}

func TestRaggedFailures(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		w := newWords(60)
		w.bad = 23
		_, err := run(t.Context(), openWords(t, w, loader.Options{BatchSize: 10, Sampler: order, Workers: 2}), ignore)
		var e *loader.Error
		if !errors.As(err, &e) || e.Record != 23 || e.Field != "t" || !errors.Is(err, errWord) {
			t.Errorf("%T: %v", order, err)
		}
		ld := openWords(t, w, loader.Options{BatchSize: 10, Sampler: order, Workers: 2, OnError: loader.Backfill})
		var valid []int
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			checkBatch(t, b)
			checkWords(t, b)
			for i, r := range b.Indices() {
				if b.Mask()[i] {
					valid = append(valid, r)
				}
			}
		}
		checkPermutation(t, "valid records", append(valid, 23), upTo(60))
	}
}

func TestRaggedThatDoesNotFit(t *testing.T) {
	w := newWords(100)
	plain := newMemorySource(10, 4)
	plain.specs = w.specs
	rg := []tensor.Spec{{Name: "t2", DType: tensor.Int8, Ragged: true}}
	for want, c := range map[string]struct {
		src loader.Source
		o   loader.Options
	}{
		"has no SliceRagged":            {plain, loader.Options{}},
		"OnError Blank has no length":   {w, loader.Options{OnError: loader.Blank}},
		"nothing to pad":                {w, loader.Options{Transforms: map[string]loader.Transform{"y": loader.Pad{Length: 3}}}},
		"Pad to Length 0":               {w, loader.Options{Transforms: map[string]loader.Transform{"t": loader.Pad{}}}},
		`Collate edits the field "t"`:   {w, loader.Options{Collate: loader.Collate{Edits: []string{"t"}, Worker: noCollate}}},
		`adds the field "t2" as ragged`: {w, loader.Options{Collate: loader.Collate{Adds: rg, Worker: noCollate}}},
	} {
		c.o.BatchSize = 2
		if _, err := loader.New(c.src, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	ld := openWords(t, w, loader.Options{BatchSize: 100, Sampler: sampler.Shuffle{}, Workers: 1, Prefetch: 1, Budget: 3 * (2*4096 + 500)})
	if _, err := run(t.Context(), ld, ignore); err == nil || !strings.Contains(err.Error(), "the limit of memory leaves 500 for each of 3 batches") {
		t.Errorf("over Budget: %v", err)
	}
	ld = openWords(t, w, loader.Options{BatchSize: 100, Sampler: sampler.Shuffle{}})
	f, err := ld.BatchFiller()
	require.NoError(t, err)
	x, y, rows := make([]byte, 400), make([]byte, 800), make([]byte, len(w.all))
	if b, err := f.Fill(t.Context(), 0, 0, x, y, rows); err != nil || b.Len() != 100 || int(b.Offsets("t")[100]) != len(w.all)/4 {
		t.Errorf("%+v: %v", b, err)
	}
	if _, err := f.Fill(t.Context(), 0, 0, x, y, rows[1:]); err == nil || !strings.Contains(err.Error(), "there is memory for") {
		t.Errorf("memory too small: %v", err)
	}
}

func TestMappedRagged(t *testing.T) {
	schema := store.Schema{Fields: []store.Field{store.NewRagged("t", tensor.Int32), store.NewField("y", tensor.Int64)}}
	path := datasettest.BuildFlat(t, schema, flat.Options{ShardBytes: 1}, 1300, store.Info{}, func(i int, r *store.Record) {
		r.Values[0] = r.Values[0][:0]
		for _, v := range wordsOf(i) {
			r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(v))
		}
		binary.LittleEndian.PutUint64(r.Values[1], uint64(3*i))
	})
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		ld, err := loader.New(ds, loader.Options{BatchSize: 50, Sampler: order, Workers: 2})
		require.NoError(t, err)
		for b, err := range ld.Epoch(t.Context(), 1) {
			require.NoError(t, err)
			checkWords(t, b)
		}
		require.NoError(t, ld.Close())
	}
}

// Without a field of one length there is no ring, and batches work all the same.
func TestOnlyRaggedFields(t *testing.T) {
	for _, budget := range []int{0, 1 << 20} {
		ld, err := loader.New(newWords(100), loader.Options{BatchSize: 8, Fields: []string{"t"}, Sampler: sampler.Shuffle{}, Budget: budget})
		require.NoError(t, err)
		records := 0
		for b, err := range ld.Epoch(context.Background(), 0) {
			require.NoError(t, err)
			rows, offsets := tensor.As[int32](b.Field("t")), b.Offsets("t")
			for i, record := range b.Indices() {
				if got := rows[offsets[i]:offsets[i+1]]; !slices.Equal(got, wordsOf(record)) {
					t.Errorf("record %d: %v", record, got)
				}
			}
			records += b.Len()
		}
		if records != 100 {
			t.Errorf("Budget %d: %d records", budget, records)
		}
		require.NoError(t, ld.Close())
	}
}
