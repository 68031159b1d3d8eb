package loader_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// TestImagesAreThoseOfThePipeline compares batches with a Runner of one's own, for both
// layouts and each type.
func TestImagesAreThoseOfThePipeline(t *testing.T) {
	const n = 40
	for _, layout := range []transforms.Layout{transforms.CHW, transforms.HWC} {
		for _, dt := range []tensor.DType{tensor.Uint8, tensor.Float32, tensor.Float16, tensor.BFloat16} {
			m := newMemorySource(n, 3*8*10)
			m.specs[0].Shape = tensor.Shape{8, 10, 3}
			if layout == transforms.CHW {
				m.specs[0].Shape = tensor.Shape{3, 8, 10}
			}
			p, err := transforms.Compose(transforms.RandomHorizontalFlip{}, transforms.Crop{Top: 1, Left: 2, Height: 6, Width: 7},
				transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: dt})
			require.NoError(t, err)
			o := loader.Options{
				BatchSize: 16, Seed: 3, Sampler: sampler.Shuffle{}, Workers: 2,
				Transforms: map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: layout}},
			}
			run := p.Runner()
			for b, err := range open(t, m, o).Epoch(t.Context(), 5) {
				require.NoError(t, err)
				x := b.Field("x")
				if want := fmt.Sprint(tensor.Shape{b.Len(), 3, 6, 7}); x.DType() != dt || x.Shape().String() != want {
					t.Fatalf("%v %v: batch is %v %v", layout, dt, x.DType(), x.Shape())
				}
				size := len(x.Bytes()) / b.Len()
				want := make([]byte, size+8)[:size]
				for i, r := range b.Indices() {
					src, err := transforms.SourceOf(transforms.Info{W: 10, H: 8, C: 3, Layout: layout}, m.data[0][r*240:(r+1)*240])
					require.NoError(t, err)
					require.NoError(t, run.DoRand(want, src, transforms.NewRand(3, 5, uint64(r))))
					if string(x.Bytes()[i*size:(i+1)*size]) != string(want) {
						t.Fatalf("%v %v: record %d differs", layout, dt, r)
					}
				}
			}
		}
	}
}

func TestTransformsThatDoNotFit(t *testing.T) {
	m, tf := newImages(t, 10)
	gray, err := transforms.Compose()
	require.NoError(t, err)
	for want, o := range map[string]loader.Options{
		`Transform for the field "z"`:               {Transforms: map[string]loader.Transform{"z": tf["x"]}},
		`field "y": transform: is int64()`:          {Transforms: map[string]loader.Transform{"y": tf["x"]}},
		`layout hwc are 6 channels`:                 {Transforms: map[string]loader.Transform{"x": loader.Images{Pipeline: gray}}},
		`Collate edits the field "z"`:               {Collate: loader.Collate{Edits: []string{"z"}, Worker: noCollate}},
		`Collate adds the field "x"`:                {Collate: loader.Collate{Adds: []tensor.Spec{{Name: "x", DType: tensor.Bool}}, Worker: noCollate}},
		`has no Worker`:                             {Collate: loader.Collate{Edits: []string{"x"}}},
		`Collate: field "n": no dtype`:              {Collate: loader.Collate{Adds: []tensor.Spec{{Name: "n"}}, Worker: noCollate}},
		`loader: field "x": no memory for worker 1`: {Workers: 2, Transforms: map[string]loader.Transform{"x": poor{}}},
		`loader: no state for worker 0`:             {Collate: loader.Collate{Worker: func(id int) (loader.CollateFunc, error) { return nil, errors.New("no state for worker 0") }}},
	} {
		o.BatchSize = 2
		if _, err := loader.New(m, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
}

func noCollate(int) (loader.CollateFunc, error) {
	return func(*loader.MutableBatch) error { return nil }, nil
}

// poor is a Transform whose second worker cannot start.
type poor struct{}

func (poor) Output(in tensor.Spec) (tensor.Spec, error) { return in, nil }

func (poor) Worker(_ tensor.Spec, id int) (loader.RecordFunc, error) {
	if id == 1 {
		return nil, errors.New("no memory for worker 1")
	}
	return func(dst, src []byte, _ loader.Record) error { copy(dst, src); return nil }, nil
}

// negate is a Transform of a user that inverts bytes, and does what its hook says.
type negate struct{ hook func(r loader.Record) error }

func (negate) Output(in tensor.Spec) (tensor.Spec, error) { return in, nil }

func (n negate) Worker(tensor.Spec, int) (loader.RecordFunc, error) {
	return func(dst, src []byte, r loader.Record) error {
		for i, b := range src {
			dst[i] = ^b
		}
		if n.hook != nil {
			return n.hook(r)
		}
		return nil
	}, nil
}

func TestTransformOfSourceWithoutViews(t *testing.T) {
	m := newMemorySource(50, 4)
	m.nowhere = true
	ld := open(t, m, loader.Options{BatchSize: 8, Workers: 2, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": negate{}}})
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		for i, r := range b.Indices() {
			if got := b.Field("x").Bytes()[i*4]; got != ^pixel(r, 0) {
				t.Fatalf("record %d: %d", r, got)
			}
		}
	}
}

func TestFailingTransformNamesItsRecord(t *testing.T) {
	for _, fail := range []func(r loader.Record) error{
		func(r loader.Record) error {
			if r.Index == 33 {
				return errBad
			}
			return nil
		},
		func(r loader.Record) error {
			if r.Index == 33 {
				panic("bad sector")
			}
			return nil
		},
	} {
		for _, workers := range []int{1, 3} {
			o := loader.Options{BatchSize: 10, Workers: workers, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": negate{fail}}}
			_, err := run(t.Context(), open(t, newMemorySource(50, 4), o), ignore)
			var e *loader.Error
			if !errors.As(err, &e) || e.Record != 33 || e.Field != "x" || !strings.Contains(err.Error(), "bad sector") {
				t.Errorf("error %v", err)
			}
		}
	}
}

// Random streams stay as they are, so that an epoch that one version began continues with the same crops in the next:
// a function of seed, epoch and record, and of the position too where a record can come twice.
func TestRandomStreamsOfOtherVersions(t *testing.T) {
	for _, c := range []struct {
		indices []int
		want    []uint64 // first draws, by position
	}{
		{[]int{2, 0, 1}, []uint64{0xfcbefafb2ba7e157, 0xe31658d80f98af08, 0x40268385d4fcf1a3}},
		{[]int{2, 0, 2}, []uint64{0x19b47bbbe6215196, 0xdac97f85ed57a268, 0x7df8cf4a366b16d4}},
	} {
		got := make([]uint64, len(c.indices))
		hook := func(r loader.Record) error {
			rnd := r.Rand()
			got[r.Position] = rnd.Uint64()
			return nil
		}
		ld := open(t, newMemorySource(3, 1), loader.Options{
			BatchSize: 3, Workers: 1, Seed: 5, Sampler: sampler.Subset{Indices: c.indices},
			Transforms: map[string]loader.Transform{"x": negate{hook}},
		})
		if _, err := run(t.Context(), ld, ignore); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: draws %#v, want %#v", c.indices, got, c.want)
		}
	}
}

func TestRandomStreamOfRepeatedRecords(t *testing.T) {
	draws := func(o sampler.Sampler) map[int]map[uint64]bool {
		seen := map[int]map[uint64]bool{}
		hook := func(r loader.Record) error {
			if seen[r.Index] == nil {
				seen[r.Index] = map[uint64]bool{}
			}
			rnd := r.Rand()
			seen[r.Index][rnd.Uint64()] = true
			return nil
		}
		ld := open(t, newMemorySource(3, 1), loader.Options{BatchSize: 10, Workers: 1, Sampler: o, Transforms: map[string]loader.Transform{"x": negate{hook}}})
		if _, err := run(t.Context(), ld, ignore); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	w, err := sampler.NewWeighted([]float64{1, 1, 1}, 60)
	require.NoError(t, err)
	n := 0
	for _, s := range draws(w) {
		n += len(s)
	}
	if n != 60 {
		t.Errorf("60 draws have %d streams", n)
	}
	for _, c := range []struct {
		order sampler.Sampler
		want  []int // streams of each record
	}{
		{sampler.Subset{Indices: []int{0, 1, 1, 2}}, []int{1, 2, 1}},
		{sampler.Subset{Indices: []int{2, 1, 0}}, []int{1, 1, 1}},
		{sampler.Subset{Ranges: [][2]int{{0, 2}, {1, 3}}}, []int{1, 2, 1}},
	} {
		for r, s := range draws(c.order) {
			if len(s) != c.want[r] {
				t.Errorf("%v: record %d has %d streams, not %d", c.order, r, len(s), c.want[r])
			}
		}
	}
}

// doubled is a Collate that doubles x in place and adds the sum of each record.
func doubled(int) (loader.CollateFunc, error) {
	return func(d *loader.MutableBatch) error {
		x, sum := d.Field("x").Bytes(), tensor.As[int64](d.Field("sum"))
		width := len(x) / d.Len()
		for i := range d.Len() {
			sum[i] = int64(d.Epoch())
			for k := range width {
				x[i*width+k] *= 2
				sum[i] += int64(x[i*width+k])
			}
		}
		if !d.Mask()[0] || len(d.Indices()) != d.Len() || d.Step() < 0 {
			return errors.New("a draft without records")
		}
		return nil
	}, nil
}

func TestCollateEditsAndAdds(t *testing.T) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		o := loader.Options{BatchSize: 7, Sampler: order, Workers: 2, Collate: loader.Collate{
			Adds: []tensor.Spec{{Name: "sum", DType: tensor.Int64}}, Edits: []string{"x"}, Worker: doubled,
		}}
		m := newMemorySource(50, 4)
		ld := open(t, m, o)
		for b, err := range ld.Epoch(t.Context(), 2) {
			require.NoError(t, err)
			for i, r := range b.Indices() {
				want := int64(2)
				for k := range 4 {
					want += int64(2 * pixel(r, k))
				}
				if got := tensor.As[int64](b.Field("sum"))[i]; got != want || tensor.As[int64](b.Field("y"))[i] != int64(3*r) {
					t.Fatalf("%T: record %d: sum %d, not %d", order, r, got, want)
				}
			}
		}
		if m.data[0][0] != pixel(0, 0) {
			t.Error("the Source was written to")
		}
	}
}

func TestFailingCollateNamesTheBatch(t *testing.T) {
	o := loader.Options{BatchSize: 10, Collate: loader.Collate{Worker: func(int) (loader.CollateFunc, error) {
		return func(d *loader.MutableBatch) error {
			if rnd := d.Rand(); d.Step() == 2 {
				return fmt.Errorf("%w %d", errBad, rnd.IntN(1))
			}
			return nil
		}, nil
	}}}
	n, err := run(t.Context(), open(t, newMemorySource(50, 4), o), ignore)
	if n != 2 || !errors.Is(err, errBad) || err.Error() != "loader: batch 2: bad sector 0" {
		t.Errorf("%d batches, then %v", n, err)
	}
}

func TestTransformsAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checked builds record where a batch is kept")
	}
	m, tf := newImages(t, 22_000)
	for _, workers := range []int{1, 2, loader.Synchronous} {
		ld, err := loader.New(m, loader.Options{BatchSize: 4, Workers: workers, Sampler: sampler.Shuffle{}, Transforms: tf})
		require.NoError(t, err)
		if got := allocsPerBatch(t, ld); got != 0 {
			t.Errorf("%d workers: %v allocations a batch after the first", workers, got)
		}
		ld.Close()
	}
}
