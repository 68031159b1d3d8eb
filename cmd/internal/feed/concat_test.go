package feed

import (
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// one returns a dataset of three records of a field.
func one(t *testing.T, f store.Field) *dataset {
	t.Helper()
	dest := datasettest.BuildFlat(t, store.Schema{Fields: []store.Field{f}}, flat.Options{}, 3, store.Info{}, func(_ int, r *store.Record) {
		if f.Ragged {
			r.Values[0] = []byte("ab")
		}
	})
	ds, err := mmapds.Open(dest)
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	return &dataset{ds, ds.Schema().Fields, ds.Guard, ds.Close}
}

// Several datasets are loaded as one if a number means the same in each.
func TestConcatAgrees(t *testing.T) {
	label := func(classes ...string) store.Field {
		f := store.NewField("labels", tensor.Int64)
		f.Classes = classes
		return f
	}
	rows := func(content string) store.Field {
		f := store.NewRagged("rows", tensor.Uint8)
		f.Content = content
		return f
	}
	image := func(layout string, n *store.Normalization) store.Field {
		f := store.NewField("images", tensor.Uint8, 3, 3, 3)
		if n != nil && n.Applied {
			f = store.NewField("images", tensor.Float32, 3, 3, 3)
		}
		f.Layout, f.Normalization = layout, n
		return f
	}
	figures := func(mean float64, applied bool) *store.Normalization {
		return &store.Normalization{Scale: 255, Mean: []float64{mean, mean, mean}, Std: []float64{1, 1, 1}, Applied: applied}
	}
	for _, c := range []struct {
		a, b store.Field
		want string
	}{
		{label("cat", "dog"), label("cat", "dog"), ""},
		{label("cat", "dog"), label("ant", "dog", "cat"), `a and b cannot be loaded together: field "labels" has the classes ["cat" "dog"] there, and ["ant" "dog" "cat"] here`},
		{label("cat", "dog"), label("cat", "dog", "emu"), `has the classes`},
		{label("cat", "dog"), label(), `and [] (none) here`},
		{label(), label("a", "b", "c", "d", "e", "f", "g"), `["a" "b" "c" "d" "e"] and 2 more here`},
		{rows(""), rows(""), ""},
		{rows(tensor.Text), rows(""), `field "rows" is uint8() of any number of rows utf-8 there, and uint8() of any number of rows here; preprocess both alike`},
		{rows(""), store.NewField("rows", tensor.Uint8), `field "rows" is uint8() of any number of rows there, and uint8() here`},
		{image(tensor.CHW, nil), image(tensor.HWC, nil), `field "images" is uint8(3, 3, 3) CHW there, and uint8(3, 3, 3) HWC here`},
		{image(tensor.CHW, figures(0.5, true)), image(tensor.CHW, figures(0.5, true)), ""},
		{image(tensor.CHW, figures(0.5, true)), image(tensor.CHW, figures(0.4, true)), "after another normalization, mean [0.5 0.5 0.5], std [1 1 1] there and mean [0.4 0.4 0.4]"},
		{image(tensor.CHW, figures(0.5, false)), image(tensor.CHW, figures(0.5, false)), ""},
		{label(), rows(""), "the fields are labels there, and rows here"},
	} {
		first, second := one(t, c.a), one(t, c.b)
		src, fields, err := concat([]string{"a", "b"}, []*dataset{first, second})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v and %v: error %v, want %q", c.a, c.b, err, c.want)
			}
			continue
		}
		if err != nil || src.Len() != 6 || fields[0].Name != c.a.Name || !reflect.DeepEqual(fields[0].Normalization, c.a.Normalization) {
			t.Errorf("%v: %v, error %v", c.a, fields, err)
		}
	}

	first, second := one(t, image(tensor.CHW, figures(0.5, false))), one(t, image(tensor.CHW, figures(0.4, false)))
	_, fields, err := concat([]string{"a", "b"}, []*dataset{first, second})
	if err != nil || fields[0].Normalization != nil || first.fields[0].Normalization == nil {
		t.Fatalf("%+v, error %v: statistics of one dataset alone", fields, err)
	}
	if _, err := normalized(fields[0], []byte(`[{"op":"Normalize"}]`)); err == nil || !strings.Contains(err.Error(), "several datasets have different ones; give them") {
		t.Errorf("Normalize without numbers over datasets that have others: error %v", err)
	}
}
