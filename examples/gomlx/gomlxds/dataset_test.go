package gomlxds_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/penstock/penstock/examples/gomlx/gomlxds"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// epoch returns the labels of every batch of an epoch as the loader makes them.
func epoch(t *testing.T, src loader.Source, o loader.Options, number int) [][]int64 {
	t.Helper()
	ld, err := loader.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	defer ld.Close()
	var out [][]int64
	for b, err := range ld.Epoch(context.Background(), number) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(tensor.As[int64](b.Field("y"))))
	}
	return out
}

func same(a, b [][]int64) bool { return slices.EqualFunc(a, b, slices.Equal[[]int64]) }

func TestBatchesAreTheLoaders(t *testing.T) {
	for _, workers := range []int{0, 1, 3, loader.Synchronous} {
		for _, world := range []loader.World{{}, {Rank: 1, Size: 3}} {
			src := newRows(1000)
			o := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 3, DropLast: true, Workers: workers, World: world}
			d := open(t, src, o, config(t))
			for number := range 3 {
				if got, want := take(t, d, -1), epoch(t, src, o, number); !same(got, want) || len(want) != d.Batches(number) {
					t.Fatalf("%d workers, rank %d: epoch %d: %v, want %v", workers, world.Rank, number, got, want)
				}
			}
		}
	}
}

// TestRecordsAreWrittenIntoTensors checks that only the Source copies.
func TestRecordsAreWrittenIntoTensors(t *testing.T) {
	src := newRows(256)
	d := open(t, src, loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}}, config(t))
	for b, err := range d.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		var at uintptr
		if err := b.Inputs[0].ConstBytes(func(data []byte) { at = uintptr(unsafe.Pointer(unsafe.SliceData(data))) }); err != nil {
			t.Fatal(err)
		}
		if !src.wroteTo(at) {
			t.Error("a tensor has memory that the Source did not write to")
		}
		x, y := values[float32](t, b.Inputs[0]), values[int64](t, b.Labels[0])
		for i, k := range y {
			if x[2*i] != float32(k) || x[2*i+1] != float32(-k) {
				t.Fatalf("record %d has %v", k, x[2*i:2*i+2])
			}
		}
		shapes := fmt.Sprint(b.Inputs[0].Shape(), b.Labels[0].Shape())
		if shapes != "(Float32)[32, 2] (Int64)[32, 1]" {
			t.Error(shapes)
		}
	}
}

func TestIterGoesOn(t *testing.T) {
	src := newRows(320)
	o := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 1}
	c := config(t)
	c.Endless = true
	want := slices.Concat(epoch(t, src, o, 0), epoch(t, src, o, 1), epoch(t, src, o, 2))
	d := open(t, src, o, c)
	got := slices.Concat(take(t, d, 7), take(t, d, 1), take(t, d, 15), take(t, d, 7))
	if !same(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s := d.Stats(); s.Batches != 30 || s.Fill <= 0 {
		t.Errorf("%+v", s)
	}
}

// TestResume takes the position after every batch of two epochs and continues there.
func TestResume(t *testing.T) {
	src := newRows(160)
	o := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 9}
	c := config(t)
	c.Endless = true
	want := slices.Concat(epoch(t, src, o, 0), epoch(t, src, o, 1), epoch(t, src, o, 2))
	for n := range 10 {
		first := open(t, src, o, c)
		take(t, first, n)
		st := first.State()
		if st.Epoch != n/5 || st.Step != n%5 {
			t.Fatalf("after %d batches: epoch %d, step %d", n, st.Epoch, st.Step)
		}
		again, err := gomlxds.Resume(src, o, c, st)
		if err != nil {
			t.Fatal(err)
		}
		if got := take(t, again, 5); !same(got, want[n:n+5]) {
			t.Errorf("after %d batches: %v, want %v", n, got, want[n:n+5])
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	o.Seed++
	if _, err := gomlxds.Resume(src, o, c, open(t, src, loader.Options{BatchSize: 32}, c).State()); err == nil || !strings.Contains(err.Error(), "seed") {
		t.Errorf("another run's state: %v", err)
	}
}

func TestMask(t *testing.T) {
	src := newRows(70)
	c := config(t)
	c.Mask = true
	d := open(t, src, loader.Options{BatchSize: 32}, c)
	var counted []int64
	for b, err := range d.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		labels, mask := values[int64](t, b.Labels[0]), values[bool](t, b.Labels[1])
		if len(labels) != 32 || len(mask) != 32 {
			t.Fatalf("%d labels, %d in the mask", len(labels), len(mask))
		}
		for i, counts := range mask {
			if counts {
				counted = append(counted, labels[i])
			} else if labels[i] != 0 || values[float32](t, b.Inputs[0])[2*i] != 0 {
				t.Errorf("what does not count is not zero: %v", labels)
			}
		}
	}
	if len(counted) != 70 || counted[69] != 69 || !slices.IsSorted(counted) {
		t.Errorf("%v", counted)
	}
}

func TestFailure(t *testing.T) {
	src := newRows(320)
	src.fail = 200
	d := open(t, src, loader.Options{BatchSize: 32, Workers: 2}, config(t))
	batches := 0
	var failed error
	for b, err := range d.Iter() {
		if failed = err; err == nil {
			batches++
			if err := b.Finalize(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if batches != 6 || failed == nil || !strings.Contains(failed.Error(), "batch 6") || !strings.Contains(failed.Error(), "on fire") {
		t.Errorf("%d batches, then %v", batches, failed)
	}
	if st := d.State(); st.Step != 6 {
		t.Errorf("the position is step %d, not that of the batch that failed", st.Step)
	}
}

func TestOneIterAtATime(t *testing.T) {
	d := open(t, newRows(320), loader.Options{BatchSize: 32}, config(t))
	for _, err := range d.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range d.Iter() {
			if err == nil {
				t.Error("two at once")
			}
		}
		break
	}
	if got := take(t, d, -1); len(got) != 9 {
		t.Errorf("%d batches are left, not 9", len(got))
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	d := open(t, newRows(10_000), loader.Options{BatchSize: 8, Workers: 3, Prefetch: 5}, config(t))
	before := runtime.NumGoroutine()
	for range 50 {
		take(t, d, 2)
	}
	// A goroutine that has done its work is counted until it is gone.
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}

func TestWhatIsWrongIsSaidAtOnce(t *testing.T) {
	good := config(t)
	for name, c := range map[string]struct {
		o    loader.Options
		c    gomlxds.Config
		want []string
	}{
		"nothing":      {loader.Options{}, gomlxds.Config{}, []string{"Backend is nil", "Inputs names no field"}},
		"fields twice": {loader.Options{BatchSize: 8, Fields: []string{"x"}}, good, []string{"Options.Fields"}},
		"no field":     {loader.Options{BatchSize: 8}, gomlxds.Config{Backend: good.Backend, Inputs: []string{"z"}}, []string{`"z"`}},
		"no batch":     {loader.Options{}, good, []string{"BatchSize"}},
		"unordered":    {loader.Options{BatchSize: 8, Unordered: true}, good, []string{"Unordered"}},
		"lengths":      {loader.Options{BatchSize: 8}, gomlxds.Config{Backend: good.Backend, Inputs: []string{"x"}, Lengths: []string{"x"}}, []string{"loader.Pad"}},
		"part":         {loader.Options{BatchSize: 24}, good, []string{"DropLast", "Mask"}},
		"part of all":  {loader.Options{BatchSize: 8, World: loader.World{Size: 3}}, good, []string{"80 records", "24"}},
		"collate": {loader.Options{BatchSize: 8, Collate: loader.Collate{Adds: []tensor.Spec{{Name: "m", DType: tensor.Float32}}}}, good,
			[]string{`"m"`}},
	} {
		_, err := gomlxds.New(newRows(80), c.o, c.c)
		for _, text := range c.want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, which does not name %s", name, err, text)
			}
		}
	}
}

// TestTransformsAndCollate has fields that are made, and of other types than those stored.
func TestTransformsAndCollate(t *testing.T) {
	c := config(t)
	c.Labels = []string{"twice", "y"}
	o := loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"x": first{}}, Collate: loader.Collate{
		Adds: []tensor.Spec{{Name: "twice", DType: tensor.Int64}},
		Worker: func(int) (loader.CollateFunc, error) {
			return func(d *loader.MutableBatch) error {
				twice := tensor.As[int64](d.Field("twice"))
				for i, y := range tensor.As[int64](d.Field("y")) {
					twice[i] = 2 * y
				}
				return nil
			}, nil
		},
	}}
	for b, err := range open(t, newRows(64), o, c).Iter() {
		if err != nil {
			t.Fatal(err)
		}
		x, twice, y := values[float32](t, b.Inputs[0]), values[int64](t, b.Labels[0]), values[int64](t, b.Labels[1])
		for i := range y {
			if x[i] != float32(y[i]) || twice[i] != 2*y[i] {
				t.Fatalf("record %d: x %v, twice %d", y[i], x[i], twice[i])
			}
		}
	}
}

// TestRagged has records of different lengths, which GoMLX takes only if they are padded.
func TestRagged(t *testing.T) {
	src := tokens(t)
	c := gomlxds.Config{Backend: goBackend(t), Inputs: []string{"tokens"}}
	if _, err := gomlxds.New(src, loader.Options{BatchSize: 4}, c); err == nil || !strings.Contains(err.Error(), "loader.Pad") {
		t.Errorf("%v, which does not say what to do", err)
	}
	o := loader.Options{BatchSize: 4, Transforms: map[string]loader.Transform{"tokens": loader.Pad{Length: 3}}}
	c.Lengths = []string{"tokens"}
	var got []string
	for b, err := range open(t, src, o, c).Iter() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(b.Inputs[0].Shape(), values[int64](t, b.Inputs[0]), values[int32](t, b.Inputs[1])))
	}
	want := []string{"(Int64)[4, 3] [0 0 0 1 0 0 2 2 0 3 3 3] [0 1 2 3]", "(Int64)[4, 3] [4 4 4 5 5 5 6 6 6 7 7 7] [3 3 3 3]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// first is a Transform that keeps the first number.
type first struct{}

func (first) Output(in tensor.Spec) (tensor.Spec, error) {
	in.Shape = nil
	return in, nil
}

func (first) Worker(tensor.Spec, int) (loader.RecordFunc, error) {
	return func(dst, src []byte, _ loader.Record) error {
		copy(dst, src)
		return nil
	}, nil
}
