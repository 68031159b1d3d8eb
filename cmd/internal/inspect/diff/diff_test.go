package diff

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/tensor"
)

func diff(t *testing.T, a, b string, opts Options) *Comparison {
	t.Helper()
	c, err := Compare(context.Background(), a, b, opts)
	require.NoError(t, err)
	return c
}

func TestDiffSame(t *testing.T) {
	for name, make := range map[string]func(testing.TB) string{"animals": datasettest.Animals, "captions": datasettest.Captions} {
		c := diff(t, make(t), make(t), Options{})
		if !c.Same || c.Err() != nil || len(c.Differences) != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestDiffValues(t *testing.T) {
	other := datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.CHW, "cat", "dog", "owl"), 600, store.Info{}, func(i int, v [][]byte) {
		datasettest.FillAnimal(i, v)
		if i == 401 || i == 17 {
			v[0][3] += 9
			v[0][4]--
		}
	})
	for workers := 1; workers < 4; workers++ {
		c := diff(t, datasettest.Animals(t), other, Options{Workers: workers})
		v := c.Values[0]
		if c.Same || v.Records != 2 || *v.First != 17 || v.Elements != 4 || v.Largest != 9 || c.Values[1].Records != 0 {
			t.Errorf("%+v", c)
		}
		var statistics []string
		for _, d := range c.Differences {
			statistics = append(statistics, d.What+" of "+d.Field)
		}
		if strings.Join(statistics, ", ") != "statistics of images" {
			t.Errorf("other differences: %q", statistics)
		}
	}
	if c := diff(t, datasettest.Animals(t), other, Options{Tolerance: 9}); !c.Same {
		t.Errorf("within 9: %+v", c)
	}
	if c := diff(t, datasettest.Animals(t), other, Options{Tolerance: 8, Data: true}); c.Same || c.Values[0].Elements != 2 {
		t.Errorf("within 8: %+v", c)
	}
}

func TestDiffEverythingElse(t *testing.T) {
	schema := datasettest.SchemaOf(tensor.Float32, tensor.CHW, "cat", "wolf")
	schema.Fields = append(schema.Fields, store.NewField("weight", tensor.Float64))
	info := store.Info{Recipe: &store.Recipe{Program: "x", Options: map[string]string{"color": "rgb", "shard-size": "1"}}}
	c := diff(t, datasettest.Animals(t), datasettest.Build(t, schema, 3, info, func(i int, v [][]byte) { v[1][0] = byte(i % 2) }), Options{})
	var b strings.Builder
	require.NoError(t, c.Render(&b))
	for _, want := range []string{
		"records\n", ": 600\n", "fields of weight\n", "not there\n", "type of images\n", ": float32 (3, 8, 8)\n", "classes of labels\n",
		`class 1 is "dog"`, `class 1 is "wolf"`, "recipe\n", "statistics of labels\n", "values that differ, of 3 records compared by position\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if err := c.Err(); err == nil || !strings.HasSuffix(err.Error(), " differ") {
		t.Error(err)
	}
}

func TestDiffLengths(t *testing.T) {
	ragged := func(extra int) string {
		schema := store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32)}}
		return datasettest.Build(t, schema, 5, store.Info{}, func(i int, v [][]byte) {
			v[0] = make([]byte, 4*i)
			if i == 3 {
				v[0] = make([]byte, 4*(i+extra))
			}
		})
	}
	c := diff(t, ragged(0), ragged(2), Options{Data: true})
	if v := c.Values[0]; v.Records != 1 || v.Lengths != 1 || *v.First != 3 || v.Elements != 0 {
		t.Errorf("%+v", v)
	}
}

func TestApart(t *testing.T) {
	float := func(x ...float64) tensor.View {
		buf := dataset.Aligned(8 * len(x))
		v := tensor.Of(tensor.Spec{Name: "x", DType: tensor.Float64}, len(x), buf)
		copy(tensor.As[float64](v), x)
		return v
	}
	n, largest := apart(float(math.NaN(), math.Inf(1), 0, 1, 2), float(math.NaN(), math.Inf(-1), math.Copysign(0, -1), 1.25, math.NaN()), 0)
	if n != 3 || largest != 0.25 {
		t.Errorf("%d elements, at most %v apart", n, largest)
	}
	signed := tensor.From([]int64{math.MinInt64, 1 << 60})
	if n, largest := apart(signed, tensor.From([]int64{math.MaxInt64, 1<<60 + 1}), 0); n != 2 || largest != math.MaxUint64 {
		t.Errorf("%d whole numbers, at most %v apart", n, largest)
	}
	large := tensor.From([]uint64{math.MaxUint64, 1<<63 + 5})
	if n, largest := apart(large, tensor.From([]int64{-1, 5}), 0); n != 2 || largest != math.MaxUint64 {
		t.Errorf("%d numbers of uint64 and int64, at most %v apart", n, largest)
	}
	if n, largest := apart(large, tensor.From([]uint64{math.MaxUint64, 5}), 0); n != 1 || largest != 1<<63 {
		t.Errorf("%d numbers of uint64, at most %v apart", n, largest)
	}
}

// Columns of two generations are compared under the names that they have in each.
func TestDiffOfRenamedColumns(t *testing.T) {
	path := datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.CHW, "cat", "dog", "owl"), 60, store.Info{}, datasettest.FillAnimal)
	for _, names := range [][2]string{{"labels", "kinds"}, {"images", "labels"}} {
		if _, err := edit.At(path).RenameColumn(names[0], names[1], edit.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range [][2]string{{path + "@1", path}, {path, path + "@1"}} {
		c := diff(t, at[0], at[1], Options{})
		var names []string
		for _, d := range c.Differences {
			names = append(names, d.What+" "+d.A+" "+d.B)
		}
		slices.Sort(names)
		want := []string{"name images labels", "name labels kinds"}
		if at[0] == path {
			want = []string{"name kinds labels", "name labels images"}
		}
		if !slices.Equal(names, want) || len(c.Values) != 2 || c.Values[0].Records+c.Values[1].Records > 0 {
			t.Errorf("%q, %+v", names, c.Values)
		}
	}
}
