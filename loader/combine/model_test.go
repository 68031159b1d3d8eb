package combine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// model is a dataset in the plainest form: the bytes of each record of each field. A record of variable length has
// any number of rows.
type model struct {
	specs   []tensor.Spec
	records [][][]byte // by field and record
	n       int
}

var dtypes = []tensor.DType{tensor.Uint8, tensor.Int16, tensor.Float32, tensor.Int64, tensor.Float64, tensor.Bool, tensor.Float16}

// newModel draws a dataset of n records.
func newModel(r *rand.Rand, n int, specs []tensor.Spec) *model {
	m := &model{specs: specs, n: n}
	for _, spec := range specs {
		records := make([][]byte, n)
		for i := range records {
			rows := 1
			if spec.Ragged {
				rows = r.IntN(5)
			}
			records[i] = randomBytes(r, rows*spec.RecordBytes())
		}
		m.records = append(m.records, records)
	}
	return m
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// randomSpecs draws fields.
func randomSpecs(r *rand.Rand) []tensor.Spec {
	specs := make([]tensor.Spec, 1+r.IntN(4))
	for i := range specs {
		specs[i] = tensor.Spec{Name: fmt.Sprintf("f%d", i), DType: dtypes[r.IntN(len(dtypes))], Ragged: r.IntN(4) == 0}
		for range r.IntN(3) {
			specs[i].Shape = append(specs[i].Shape, 1+r.IntN(6))
		}
	}
	return specs
}

// arrays returns the dataset as a Source of slices in memory.
func (m *model) arrays(t *testing.T) *combine.Arrays {
	var fields []combine.Array
	for f, spec := range m.specs {
		a := combine.Array{Name: spec.Name}
		all := aligned(bytes.Join(m.records[f], nil))
		a.Values = tensor.Of(spec, len(all)/spec.RecordBytes(), all)
		if spec.Ragged {
			a.Offsets = m.offsets(f, consecutive(0, m.n))
		}
		fields = append(fields, a)
	}
	src, err := combine.NewArrays(fields...)
	require.NoError(t, err)
	return src
}

// aligned returns bytes in memory that tensor.As takes for any type.
func aligned(b []byte) []byte {
	words := make([]uint64, len(b)/8+1)
	out := tensor.From(words).Bytes()[:len(b):len(b)]
	copy(out, b)
	return out
}

func consecutive(a, b int) []int {
	var list []int
	for i := a; i < b; i++ {
		list = append(list, i)
	}
	return list
}

// gather returns the bytes of records of a field.
func (m *model) gather(f int, indices []int) []byte {
	out := []byte{}
	for _, i := range indices {
		out = append(out, m.records[f][i]...)
	}
	return out
}

// offsets returns those of the rows of records.
func (m *model) offsets(f int, indices []int) []int64 {
	out := []int64{0}
	for _, i := range indices {
		out = append(out, out[len(out)-1]+int64(len(m.records[f][i])/m.specs[f].RecordBytes()))
	}
	return out
}

// check compares a Source with the dataset: by calls of its methods, and through a Loader.
func (m *model) check(t *testing.T, r *rand.Rand, src loader.Source) {
	t.Helper()
	if src.Len() != m.n || !slices.EqualFunc(src.Specs(), m.specs, func(a, b tensor.Spec) bool {
		return a.Name == b.Name && a.DType == b.DType && a.Ragged == b.Ragged && slices.Equal(a.Shape, b.Shape)
	}) {
		t.Fatalf("%d records of %v, want %d of %v", src.Len(), src.Specs(), m.n, m.specs)
	}
	can, err := loader.CapabilitiesOf(src)
	require.NoError(t, err)
	require.NoError(t, src.Retain())
	for range 6 {
		m.checkCall(t, r, src, can)
	}
	src.Release()
	if m.n > 0 {
		m.checkLoader(t, r, src)
	}
}

// checkCall reads some records of a field in each way.
func (m *model) checkCall(t *testing.T, r *rand.Rand, src loader.Source, can loader.Capabilities) {
	t.Helper()
	f := r.IntN(len(m.specs))
	spec, ctx := m.specs[f], t.Context()
	a := r.IntN(m.n + 1)
	b := a + r.IntN(m.n-a+1)
	var indices []int
	if m.n > 0 {
		for range r.IntN(12) {
			indices = append(indices, r.IntN(m.n))
		}
	}
	require.NoError(t, src.Prefetch(spec.Name, a, b))
	if can.Mapped != nil {
		require.NoError(t, can.Mapped.Warm(spec.Name, a, b))
	}
	list := consecutive(a, b)
	var slice, gathered []byte
	if spec.Ragged {
		offsets, lengths := make([]int64, len(indices)+1), make([]int64, len(indices)+1)
		got, err := can.Ragged.GatherRagged(ctx, spec.Name, indices, offsets, nil)
		require.NoError(t, errors.Join(err, can.Ragged.Lengths(ctx, spec.Name, indices, lengths)))
		if want := m.offsets(f, indices); !slices.Equal(offsets, want) || !slices.Equal(lengths, want) {
			t.Fatalf("%s of %v: offsets %v and %v, want %v", spec.Name, indices, offsets, lengths, want)
		}
		own := make([]int64, b-a+1)
		v, err := can.Ragged.SliceRagged(spec.Name, a, b, own)
		require.NoError(t, err)
		if want := m.offsets(f, list); !slices.Equal(own, want) {
			t.Fatalf("%s[%d:%d]: offsets %v, want %v", spec.Name, a, b, own, want)
		}
		slice, gathered = v.Bytes(), got
	} else {
		gathered = make([]byte, len(indices)*spec.RecordBytes())
		require.NoError(t, src.Gather(ctx, spec.Name, indices, gathered))
		v, err := src.Slice(spec.Name, a, b)
		require.NoError(t, err)
		slice = v.Bytes()
		if v.Len() != b-a || v.DType() != spec.DType || !slices.Equal(v.Shape()[1:], spec.Shape) {
			t.Fatalf("%s[%d:%d] is %v%v, want %v%v", spec.Name, a, b, v.DType(), v.Shape(), spec.DType, spec.Shape)
		}
	}
	if want := m.gather(f, indices); !bytes.Equal(gathered, want) {
		t.Fatalf("%s of %v: %x, want %x", spec.Name, indices, gathered, want)
	}
	if want := m.gather(f, list); !bytes.Equal(slice, want) {
		t.Fatalf("%s[%d:%d]: %x, want %x", spec.Name, a, b, slice, want)
	}
}

// checkLoader has a Loader of each rank read an epoch, from a random step on.
func (m *model) checkLoader(t *testing.T, r *rand.Rand, src loader.Source) {
	t.Helper()
	world := 1 + r.IntN(3)
	opts := loader.Options{BatchSize: 1 + r.IntN(9), Seed: r.Uint64(), Workers: []int{loader.Synchronous, 0, 1, 2}[r.IntN(4)]}
	if r.IntN(2) == 0 {
		opts.Sampler = sampler.Shuffle{}
	}
	var state loader.State
	for rank := range world {
		opts.World = loader.World{Rank: rank, Size: world}
		ld, err := loader.New(src, opts)
		require.NoError(t, err)
		if rank == 0 && r.IntN(2) == 0 {
			state = ld.State()
			if state.Step = r.IntN(ld.Batches(0) + 1); state.Step == ld.Batches(0) {
				state.Step--
			}
		}
		if state.Version > 0 {
			if text, err := json.Marshal(state); err != nil || json.Unmarshal(text, &state) != nil {
				t.Fatal("a state that is not JSON")
			}
			require.NoError(t, ld.Close())
			if ld, err = loader.Resume(src, opts, state); err != nil {
				t.Fatal(err)
			}
		}
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			m.checkBatch(t, b)
		}
		require.NoError(t, ld.Close())
	}
}

func (m *model) checkBatch(t *testing.T, b loader.Batch) {
	t.Helper()
	for f, spec := range m.specs {
		if got, want := b.Field(spec.Name).Bytes(), m.gather(f, b.Indices()); !bytes.Equal(got, want) {
			t.Fatalf("batch %d: %s of %v: %x, want %x", b.Step(), spec.Name, b.Indices(), got, want)
		}
		if spec.Ragged && !slices.Equal(b.Offsets(spec.Name), m.offsets(f, b.Indices())) {
			t.Fatalf("batch %d: %s of %v: offsets %v", b.Step(), spec.Name, b.Indices(), b.Offsets(spec.Name))
		}
	}
}

// random returns a generator whose seed a failure prints.
func random(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

func TestArrays(t *testing.T) {
	for seed := range uint64(200) {
		r := random(t, seed)
		m := newModel(r, r.IntN(40), randomSpecs(r))
		m.check(t, r, m.arrays(t))
	}
}

// TestFunc compares records that a function makes with a model.
func TestFunc(t *testing.T) {
	for seed := range uint64(100) {
		r := random(t, seed)
		specs := randomSpecs(r)
		for i := range specs {
			specs[i].Ragged = false
		}
		m := newModel(r, r.IntN(40), specs)
		m.check(t, r, combine.Func{Records: m.n, Fields: specs, Make: func(_ context.Context, record int, field string, dst tensor.View) error {
			copy(dst.Bytes(), m.records[slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == field })][record])
			return nil
		}})
	}
}

// TestFuncFails has the error of a record name it once.
func TestFuncFails(t *testing.T) {
	src := combine.Func{Records: 8, Fields: []tensor.Spec{{Name: "x", DType: tensor.Int64}}}
	if err := src.Retain(); err == nil {
		t.Error("without a function there is no error")
	}
	src.Make = func(_ context.Context, record int, _ string, dst tensor.View) error {
		if record == 5 {
			return errors.New("no such row")
		}
		binary.NativeEndian.PutUint64(dst.Bytes(), uint64(record))
		return nil
	}
	ld, err := loader.New(src, loader.Options{BatchSize: 2})
	require.NoError(t, err)
	defer ld.Close()
	for _, err = range ld.Epoch(t.Context(), 0) {
	}
	const want = `loader: batch 2: record 5: field "x": no such row`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestArraysRefuses reports fields that are not records.
func TestArraysRefuses(t *testing.T) {
	x := tensor.From(make([]float32, 12), 3)
	for want, fields := range map[string][]combine.Array{
		"no fields":                            nil,
		"has no Values":                        {{Name: "x"}},
		"has no name":                          {{Values: x}},
		"two fields":                           {{Name: "x", Values: x}, {Name: "x", Values: x}},
		"has 2 records, and field \"x\" has 4": {{Name: "x", Values: x}, {Name: "y", Values: tensor.From(make([]int64, 2))}},
		"must go up from 0":                    {{Name: "x", Values: x, Offsets: []int64{0, 3, 2, 4}}},
		"number of rows, 4":                    {{Name: "x", Values: x, Offsets: []int64{0, 3}}},
	} {
		if _, err := combine.NewArrays(fields...); err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
