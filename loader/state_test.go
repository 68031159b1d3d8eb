package loader_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// named is a memory that says which dataset it is.
type named struct {
	*memory
	id string
}

func (n named) ID() string { return n.id }

// newImages is a Source of small images, with a transform that crops, mirrors and normalizes.
func newImages(t testing.TB, n int) (named, map[string]loader.Transform) {
	t.Helper()
	m := newMemorySource(n, 3*6*6)
	m.specs[0].Shape = tensor.Shape{3, 6, 6}
	p, err := transforms.Compose(
		transforms.RandomHorizontalFlip{}, transforms.RandomVerticalFlip{},
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.5, .4, .3}, Std: []float64{.2, .3, .4}},
	)
	require.NoError(t, err)
	return named{m, "0123456789abcdef0123456789abcdef"}, map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}
}

// seen is a record that a step trained on, and a digest of its augmented bytes.
type seen struct {
	record int
	sum    float64
}

// look returns the valid records of a batch.
func look(b loader.Batch) (out []seen) {
	x := tensor.As[float32](b.Field("x"))
	size := len(x) / b.Len()
	for i, r := range b.Indices() {
		sum := 0.0
		for k, v := range x[i*size : (i+1)*size] {
			sum += float64(v) * float64(k+1)
		}
		if b.Mask()[i] {
			out = append(out, seen{r, sum})
		}
	}
	return out
}

// TestResumeAnywhere stops at 200 random batches of a run of three epochs, and goes on
// with other workers and in worlds of other sizes: records, order and augmentation are those
// of a run that never stopped.
func TestResumeAnywhere(t *testing.T) {
	const n, global, epochs = 250, 24, 3
	m, tf := newImages(t, n)
	options := func(rank, size, workers int) loader.Options {
		return loader.Options{
			BatchSize: global / size, Sampler: sampler.Shuffle{}, Seed: 11, Workers: workers, Transforms: tf,
			World: loader.World{Rank: rank, Size: size},
		}
	}
	whole, states := record(t, m, options(0, 1, 1), epochs)
	rnd := rand.New(rand.NewPCG(1, 2))
	for point := range 200 {
		at := rnd.IntN(len(whole))
		size := []int{1, 2, 3, 8}[point%4]
		workers := []int{loader.Synchronous, 1, 2, 3}[rnd.IntN(4)]
		steps := min(1+rnd.IntN(3), len(whole)-at)
		got := make([][]seen, steps)
		for rank := range size {
			for i, batch := range replay(t, m, options(rank, size, workers), states[at], steps) {
				got[i] = append(got[i], batch...)
			}
		}
		for i := range got {
			if !slices.Equal(got[i], whole[at+i]) {
				t.Fatalf("point %d: resumed at %+v in %d ranks of %d workers: batch %d is another", point, states[at], size, workers, i)
			}
		}
	}
}

// record runs all epochs and returns each batch, and the state before it.
func record(t testing.TB, src loader.Source, o loader.Options, epochs int) (all [][]seen, states []loader.State) {
	t.Helper()
	ld, err := loader.New(src, o)
	require.NoError(t, err)
	defer ld.Close()
	states = append(states, ld.State())
	for _, batches := range ld.Epochs(t.Context(), epochs) {
		for b, err := range batches {
			require.NoError(t, err)
			all = append(all, look(b))
			states = append(states, roundTrip(t, ld.State()))
		}
	}
	return all, states
}

// roundTrip sends a state through JSON.
func roundTrip(t testing.TB, st loader.State) (back loader.State) {
	t.Helper()
	b, err := json.Marshal(st)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || !reflect.DeepEqual(back, st) || len(b) >= 300 {
		t.Fatalf("%d bytes of state: %s: %v", len(b), b, err)
	}
	return back
}

// replay resumes and takes some batches.
func replay(t testing.TB, src loader.Source, o loader.Options, st loader.State, steps int) (out [][]seen) {
	t.Helper()
	ld, err := loader.Resume(src, o, st)
	require.NoError(t, err)
	defer ld.Close()
	for _, batches := range ld.Epochs(t.Context(), math.MaxInt) {
		for b, err := range batches {
			require.NoError(t, err)
			if out = append(out, look(b)); len(out) == steps {
				return out
			}
		}
	}
	return out
}

func TestStateIsSmall(t *testing.T) {
	m, tf := newImages(t, 10)
	m.id = strings.Repeat("long", 100)
	weights := make([]float64, 10)
	for i := range weights {
		weights[i] = 1
	}
	w, err := sampler.NewWeighted(weights, math.MaxInt)
	require.NoError(t, err)
	o := loader.Options{BatchSize: 1, Sampler: w, Seed: math.MaxUint64, Transforms: tf, DropLast: true}
	ld, err := loader.New(m, o)
	require.NoError(t, err)
	defer ld.Close()
	st := ld.State()
	st.GlobalBatch = 1 << 50
	st.Epoch, st.Step, st.Records, st.Done = math.MaxInt, math.MaxInt, math.MaxInt, strings.Repeat("ab", 8)
	roundTrip(t, st)
}

func TestResumeRefusesAnotherRun(t *testing.T) {
	m, tf := newImages(t, 100)
	base := loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}, Seed: 1, Transforms: tf}
	_, states := record(t, m, base, 1)
	st := states[4]
	other := named{m.memory, "ffff"}
	larger, _ := newImages(t, 101)
	with := func(f func(o *loader.Options)) loader.Options {
		o := base
		f(&o)
		return o
	}
	flip, err := transforms.Compose(transforms.RandomHorizontalFlip{}, transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32})
	require.NoError(t, err)
	for _, c := range []struct {
		src  loader.Source
		o    loader.Options
		want string
	}{
		{other, base, "another dataset: 0123456789abcdef0123456789abcdef, now ffff"},
		{larger, base, "another number of records: 100, now 101"},
		{m, with(func(o *loader.Options) { o.Sampler = sampler.Block{Size: 2} }), "another sampler: shuffle, now block(2)"},
		{m, with(func(o *loader.Options) { o.Seed = 2 }), "another seed: 1, now 2"},
		{m, with(func(o *loader.Options) { o.World.Size = 2 }), "another global batch (batch size times world size): 10, now 20"},
		{m, with(func(o *loader.Options) { o.DropLast = true }), "another setting of drop last"},
		{m, with(func(o *loader.Options) {
			o.Transforms = map[string]loader.Transform{"x": loader.Images{Pipeline: flip, Layout: transforms.CHW}}
		}), "another pipeline of transforms"},
		{m, with(func(o *loader.Options) { o.Collate.ID = "mixup" }), "another collate function (batch transforms): , now mixup"},
	} {
		if _, err := loader.Resume(c.src, c.o, st); err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "another") != 1 {
			t.Errorf("error %v; want %s alone", err, c.want)
		}
	}
	for _, corruption := range []func(*loader.State){
		func(s *loader.State) { s.Version = 9 }, func(s *loader.State) { s.Step = -1 }, func(s *loader.State) { s.Step = 11 },
		func(s *loader.State) { s.Done = "zz" }, func(s *loader.State) { s.Done = "01" }, func(s *loader.State) { s.Done = strings.Repeat("0f", 9) },
	} {
		bad := st
		corruption(&bad)
		if _, err := loader.Resume(m, base, bad); err == nil || !strings.HasPrefix(err.Error(), "loader: resume: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestEveryOrderHasItsID(t *testing.T) {
	src := newMemorySource(100, 2)
	weighted := func(w ...float64) sampler.Sampler {
		o, err := sampler.NewWeighted(slices.Concat(w, make([]float64, 100-len(w))), 100)
		require.NoError(t, err)
		return o
	}
	ids := map[string]string{}
	for _, o := range []sampler.Sampler{
		nil, sampler.Shuffle{}, sampler.Block{Size: 5}, sampler.Block{Size: 6}, sampler.Subset{Indices: []int{1}}, sampler.Subset{Indices: []int{2}},
		sampler.Subset{Indices: []int{2}, Inner: sampler.Shuffle{}}, sampler.Subset{Ranges: [][2]int{{1, 2}}}, weighted(1, 2), weighted(2, 1),
		sampler.Split{From: 0, To: 0.5}, sampler.Split{From: 0, To: 0.6}, sampler.Split{Seed: 1, From: 0, To: 0.5}, reverse{},
	} {
		id := open(t, src, loader.Options{BatchSize: 1, Sampler: o}).State().Sampler
		if other, ok := ids[id]; ok || id == "" || len(id) > 40 {
			t.Errorf("%#v has the ID %q of %s", o, id, other)
		}
		ids[id] = fmt.Sprintf("%#v", o)
	}
}

func TestStateAtEnds(t *testing.T) {
	ld := open(t, newMemorySource(30, 4), loader.Options{BatchSize: 10, Workers: 2})
	check := func(when string, epoch, step int) {
		t.Helper()
		if st := ld.State(); st.Epoch != epoch || st.Step != step {
			t.Errorf("%s: epoch %d, step %d; want %d, %d", when, st.Epoch, st.Step, epoch, step)
		}
	}
	check("at the start", 0, 0)
	for b := range ld.Epoch(t.Context(), 3) {
		want := [][2]int{{3, 1}, {3, 2}, {4, 0}}[b.Step()]
		check("in the body", want[0], want[1])
	}
	check("after epoch 3", 4, 0)
	for range ld.Epoch(t.Context(), 7) {
		break
	}
	check("after a break", 7, 1)
	ld2, err := loader.Resume(newMemorySource(30, 4), loader.Options{BatchSize: 10}, ld.State())
	require.NoError(t, err)
	defer ld2.Close()
	var steps []int
	for range 2 { // the first goes on, the second is the whole epoch
		for b, err := range ld2.Epoch(t.Context(), 7) {
			require.NoError(t, err)
			steps = append(steps, b.Step())
		}
	}
	if want := []int{1, 2, 0, 1, 2}; !slices.Equal(steps, want) {
		t.Errorf("steps %v; want %v", steps, want)
	}
}

// TestAsCompletedHasExactState stops an unordered run at random batches: what was taken and
// what a resumed run takes are all batches, each once.
func TestAsCompletedHasExactState(t *testing.T) {
	const n, batch = 640, 10
	m := newMemorySource(n, 4)
	rnd := rand.New(rand.NewPCG(3, 4))
	unordered := 0
	for range 60 {
		o := loader.Options{BatchSize: batch, Sampler: sampler.Shuffle{}, Workers: 4, Prefetch: 3, Unordered: true}
		ld, err := loader.New(m, o)
		require.NoError(t, err)
		var steps []int
		stop := rnd.IntN(n/batch) + 1
		var st loader.State
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			checkBatch(t, b)
			steps = append(steps, b.Step())
			if st = roundTrip(t, ld.State()); len(steps) == stop {
				break
			}
		}
		ld.Close()
		if !slices.IsSorted(steps) {
			unordered++
		}
		if st.Epoch == 1 {
			continue
		}
		o.Unordered = stop%2 == 0
		o.Workers = 1 + stop%3
		if ld, err = loader.Resume(m, o, st); err != nil {
			t.Fatal(err)
		}
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			checkBatch(t, b)
			steps = append(steps, b.Step())
		}
		ld.Close()
		checkPermutation(t, fmt.Sprintf("stopped at %+v", st), steps, upTo(n/batch))
	}
	t.Logf("%d of 60 runs were out of order", unordered)
}

// FuzzResume has any text for a state: it is refused, or it is a position of the run.
func FuzzResume(f *testing.F) {
	m := newMemorySource(1000, 2)
	o := loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}, Seed: 7, Workers: 2, Unordered: true}
	base := open(f, m, o).State()
	for _, at := range []loader.State{{Epoch: 3, Step: 50, Done: "a2"}, {Step: 100}, {Epoch: -5, Step: 99, Done: "8000000000000000"}, {Epoch: math.MaxInt, Step: 100}} {
		st := base
		st.Epoch, st.Step, st.Done = at.Epoch, at.Step, at.Done
		text, err := json.Marshal(st)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var st loader.State
		if json.Unmarshal(text, &st) != nil {
			return
		}
		ld, err := loader.Resume(m, o, st)
		if err != nil {
			return
		}
		defer ld.Close()
		seen := map[int]bool{}
		for b, err := range ld.Epoch(t.Context(), ld.State().Epoch) {
			require.NoError(t, err)
			checkBatch(t, b)
			if seen[b.Step()] || b.Step() < ld.State().Step-100 || b.Step() >= 100 {
				t.Fatalf("%s: batch %d", text, b.Step())
			}
			seen[b.Step()] = true
		}
		if len(seen) > 100 || len(seen) == 0 {
			t.Fatalf("%s: %d batches", text, len(seen))
		}
	})
}

// TestSeek goes to and fro in one Loader, which then yields what one that was resumed there does.
func TestSeek(t *testing.T) {
	src, ts := newImages(t, 23)
	o := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Seed: 5, Workers: 2, Transforms: ts}
	all, states := record(t, src, o, 3)
	ld, err := loader.New(src, o)
	require.NoError(t, err)
	defer ld.Close()
	for _, k := range []int{7, 0, 6, 11, 11, 1, 17} {
		require.NoError(t, ld.Seek(states[k]))
		var got [][]seen
		for _, batches := range ld.Epochs(t.Context(), 3) {
			for b, err := range batches {
				require.NoError(t, err)
				if got = append(got, look(b)); len(got) == 1 {
					if err := ld.Seek(states[0]); !errors.Is(err, loader.ErrBusy) {
						t.Errorf("in a loop: %v; want ErrBusy", err)
					}
				}
			}
		}
		if !slices.EqualFunc(got, all[k:], slices.Equal) {
			t.Errorf("from batch %d: %v; want %v", k, got, all[k:])
		}
	}
	before, other := ld.State(), states[3]
	other.Seed++
	if err := ld.Seek(other); err == nil || !strings.Contains(err.Error(), "loader: seek: the state is of another seed: 6, now 5") || !reflect.DeepEqual(ld.State(), before) {
		t.Errorf("the state of another run: %v, and now at %v", err, ld.State())
	}
}
