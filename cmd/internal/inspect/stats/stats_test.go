package stats

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func surveyed(t *testing.T, path string, opts Options) *Stats {
	t.Helper()
	s, err := Compute(context.Background(), path, opts)
	require.NoError(t, err)
	return s
}

// noise is a dataset of n records of random numbers in two classes, the second brighter by 10.
func noise(t testing.TB, dtype tensor.DType, layout string, n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	return datasettest.Build(t, datasettest.SchemaOf(dtype, layout, "dark", "bright"), n, store.Info{}, func(i int, v [][]byte) {
		class := i % 2
		v[1][0] = byte(class)
		view := tensor.Of(tensor.Spec{Name: "x", DType: dtype}, len(v[0])/dtype.Size(), v[0])
		for k := range view.Len() {
			switch dtype {
			case tensor.Float32:
				tensor.As[float32](view)[k] = float32(rng.NormFloat64() + 10*float64(class))
			default:
				v[0][k] = byte(rng.IntN(200) + 10*class)
			}
		}
	})
}

func TestStatsAgreeWithTheManifest(t *testing.T) {
	for _, path := range []string{
		datasettest.Animals(t), noise(t, tensor.Uint8, tensor.HWC, 1500), noise(t, tensor.Float32, tensor.CHW, 900), noise(t, tensor.Float32, tensor.HWC, 100),
		noise(t, tensor.Int8, tensor.CHW, 100), datasettest.Captions(t),
	} {
		s := surveyed(t, path, Options{})
		if len(s.Fields) < 2 {
			t.Fatalf("%d fields", len(s.Fields))
		}
		for _, f := range s.Fields {
			if f.Content == "" && (f.Agrees == nil || !*f.Agrees) {
				t.Errorf("%s: differs from the manifest: %+v", f.Name, f)
			}
			for _, c := range f.Channels {
				values := int64(c.NonFinite)
				for _, n := range c.Histogram.Counts {
					values += n
				}
				if f.Ragged {
					continue
				}
				if want := s.Records * int64(f.Shape.Elems()/len(f.Channels)); values != want {
					t.Errorf("%s %s: the histogram counts %d values of %d", f.Name, c.Name, values, want)
				}
			}
		}
	}
}

// On a terminal, tables and histograms are as wide as it is.
func TestStatsFitTheTerminal(t *testing.T) {
	s := surveyed(t, datasettest.Animals(t), Options{})
	for _, width := range []int{60, 80, 0} {
		var b strings.Builder
		require.NoError(t, s.Render(&b, 0, width))
		if long := longer(b.String()[strings.IndexByte(b.String(), '\n')+1:], 80); long != (width == 0) {
			t.Errorf("at %d: a line has more than 80 characters: %v\n%s", width, long, b.String())
		}
		if !strings.Contains(b.String(), "blue   0  |") || strings.Count(b.String(), "2 owl") != map[int]int{60: 2, 80: 1, 0: 1}[width] {
			t.Errorf("at %d:\n%s", width, b.String())
		}
	}
}

func TestStatsByClass(t *testing.T) {
	f := surveyed(t, noise(t, tensor.Float32, tensor.CHW, 500), Options{}).Fields[0]
	if f.ClassField != "labels" || len(f.Classes) != 2 || f.Classes[1].Name != "bright" || f.Classes[0].Records != 250 {
		t.Fatalf("%+v", f)
	}
	for i, c := range f.Classes {
		for _, m := range c.Channels {
			if math.Abs(m.Mean-float64(10*i)) > 0.1 || math.Abs(m.Std-1) > 0.1 {
				t.Errorf("class %d: %+v", i, m)
			}
		}
	}
}

func TestStatsDoNotDependOnWorkers(t *testing.T) {
	path := noise(t, tensor.Float32, tensor.HWC, 700)
	one := surveyed(t, path, Options{Workers: 1})
	if five := surveyed(t, path, Options{Workers: 5}); !reflect.DeepEqual(one, five) {
		t.Error("five workers give other statistics than one")
	}
}

func TestStatsOfASplit(t *testing.T) {
	s := surveyed(t, datasettest.Captions(t), Options{Selection: dataset.Selection{Split: "val"}})
	if s.Records != 2 || s.Fields[0].Lengths.Mean != 8.5 || s.Fields[0].Agrees != nil {
		t.Errorf("%+v", s)
	}
}

func TestStatsNoticeCorruption(t *testing.T) {
	path := datasettest.Animals(t)
	datasettest.Rewrite(t, path+"/images-00000.npy", datasettest.Flip(layout.HeaderBytes+7))
	s := surveyed(t, path, Options{})
	var b strings.Builder
	require.NoError(t, s.Render(&b, 0, 0))
	if *s.Fields[0].Agrees || !strings.Contains(b.String(), "The manifest has other statistics: see penstock inspect verify") {
		t.Errorf("a changed value goes unnoticed:\n%s", b.String())
	}
}

func TestStatsOfForeignFile(t *testing.T) {
	f := surveyed(t, datasettest.SmallHDF5("new-chunks"), Options{Selection: dataset.Selection{Fields: []string{"tree"}}}).Fields[0]
	if f.Agrees != nil || f.Channels[0].Max < f.Channels[0].Min || len(f.Channels[0].Histogram.Counts) == 0 {
		t.Errorf("%+v", f)
	}
}

func TestHistogramLimits(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		whole     bool
		values    []float64
		want      []int64
	}{
		{3, 3, false, []float64{3, 3}, []int64{2}},
		{0, 3, true, []float64{0, 3, 3}, []int64{1, 0, 0, 2}},
		{-1, 1, false, []float64{-1, math.NaN(), math.Inf(1)}, append([]int64{1}, make([]int64, 63)...)},
		{-1, 1, false, []float64{1}, append(make([]int64, 63), 1)},
		{0, math.MaxFloat64, false, []float64{math.MaxFloat64}, append(make([]int64, 63), 1)},
		{-math.MaxFloat64, math.MaxFloat64, false, []float64{0}, append(append(make([]int64, 32), 1), make([]int64, 31)...)},
	} {
		h := newHistogram(c.low, c.high, numbers(c.whole))
		h.add(c.values)
		if !reflect.DeepEqual(h.Counts, c.want) {
			t.Errorf("%+v: %v", c, h.Counts)
		}
	}
}

func TestSparkline(t *testing.T) {
	if got := sparkline([]int64{0, 1, 500, 1000}); got != "| ▁▄█|" {
		t.Errorf("%q", got)
	}
}
