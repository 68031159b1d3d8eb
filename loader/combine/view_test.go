package combine_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/tensor"
)

var programs = flag.Int("views.programs", 300, "random views that are compared with plain Go")

// leaf returns a dataset as a Source of slices or, if it has no records of variable length, of a function, whose
// records are no memory.
func (m *model) leaf(t *testing.T, r *rand.Rand) loader.Source {
	if r.IntN(3) > 0 || slices.ContainsFunc(m.specs, func(s tensor.Spec) bool { return s.Ragged }) {
		return m.arrays(t)
	}
	return combine.Func{Records: m.n, Fields: m.specs, Make: func(_ context.Context, record int, field string, dst tensor.View) error {
		copy(dst.Bytes(), m.records[slices.IndexFunc(m.specs, func(s tensor.Spec) bool { return s.Name == field })][record])
		return nil
	}}
}

// randomView draws views of views over a dataset of n records with some fields, and the model of it.
func randomView(t *testing.T, r *rand.Rand, n, depth int, specs []tensor.Spec) (loader.Source, *model) {
	kind := r.IntN(4)
	switch {
	case depth == 0 || kind == 0:
		m := newModel(r, n, specs)
		return m.leaf(t, r), m
	case kind == 1 && len(specs) > 1:
		cut := 1 + r.IntN(len(specs)-1)
		a, m := randomView(t, r, n, depth-1, specs[:cut])
		b, more := randomView(t, r, n, depth-1, specs[cut:])
		zip, err := combine.NewZip(a, b)
		require.NoError(t, err)
		return zip, &model{specs: specs, n: n, records: slices.Concat(m.records, more.records)}
	case kind == 2:
		cut := r.IntN(n + 1)
		a, m := randomView(t, r, cut, depth-1, specs)
		b, more := randomView(t, r, n-cut, depth-1, specs)
		both, err := combine.NewConcat(a, b)
		require.NoError(t, err)
		joined := &model{specs: specs, n: n}
		for f := range specs {
			joined.records = append(joined.records, slices.Concat(m.records[f], more.records[f]))
		}
		return both, joined
	}
	return randomSelect(t, r, n, depth, specs)
}

func randomSelect(t *testing.T, r *rand.Rand, n, depth int, specs []tensor.Spec) (loader.Source, *model) {
	inner := slices.Clone(specs)
	s := combine.Select{Rename: map[string]string{}}
	for i := range inner {
		s.Fields = append(s.Fields, inner[i].Name)
		if r.IntN(4) == 0 {
			old := fmt.Sprintf("old%d", r.Uint32())
			s.Rename[old], s.Fields[i], inner[i].Name = specs[i].Name, old, old
		}
	}
	extra := append(inner, tensor.Spec{Name: fmt.Sprintf("extra%d", r.Uint32()), DType: tensor.Int16})
	of := 1 + n + r.IntN(5)
	src, m := randomView(t, r, of, depth-1, extra)
	var numbers []int
	if r.IntN(2) == 0 {
		s.Ranges = [][2]int{}
		for left := n; left > 0; {
			a := r.IntN(of)
			k := 1 + r.IntN(min(left, of-a))
			s.Ranges = append(s.Ranges, [2]int{a, a + k})
			numbers, left = append(numbers, consecutive(a, a+k)...), left-k
		}
	} else {
		numbers = []int{}
		for len(numbers) < n {
			a := r.IntN(of)
			numbers = append(numbers, consecutive(a, a+1+r.IntN(min(n-len(numbers), of-a)))...)
		}
		s.Records = numbers
	}
	v, err := combine.NewSelect(src, s)
	require.NoError(t, err)
	out := &model{specs: specs, n: n}
	for f := range specs {
		records := make([][]byte, n)
		for i, k := range numbers {
			records[i] = m.records[f][k]
		}
		out.records = append(out.records, records)
	}
	return v, out
}

// TestViews compares random views of views with plain Go.
func TestViews(t *testing.T) {
	for seed := range uint64(*programs) {
		r := random(t, seed)
		src, m := randomView(t, r, r.IntN(30), 1+r.IntN(4), randomSpecs(r))
		m.check(t, r, src)
	}
}

// TestViewsAreViews has consecutive records of a View be memory of the slices.
func TestViewsAreViews(t *testing.T) {
	values := make([]int64, 100)
	for i := range values {
		values[i] = int64(i)
	}
	src, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From(values)})
	require.NoError(t, err)
	some, err := combine.NewSelect(src, combine.Select{Ranges: [][2]int{{50, 90}, {10, 20}}, Rename: map[string]string{"x": "y"}})
	require.NoError(t, err)
	v, err := combine.NewZip(src2(t, 50), some)
	require.NoError(t, err)
	if !v.Contiguous("y", 0, 40) || !v.IsWarm("y", 40, 50) || v.Contiguous("y", 39, 41) {
		t.Error("records of a range are not a view, or those of two ranges are")
	}
	got, err := v.Slice("y", 41, 43)
	require.NoError(t, err)
	values[11] = -1
	if tensor.As[int64](got)[0] != -1 {
		t.Error("a slice of a View is a copy")
	}
}

func src2(t *testing.T, n int) loader.Source {
	src, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From(make([]uint8, n))})
	require.NoError(t, err)
	return src
}

// TestViewFails has the error of a record name that of the View.
func TestViewFails(t *testing.T) {
	src := combine.Func{Records: 9, Fields: []tensor.Spec{{Name: "x", DType: tensor.Uint8}}, Make: func(_ context.Context, record int, _ string, _ tensor.View) error {
		if record == 7 {
			return context.DeadlineExceeded
		}
		return nil
	}}
	v, err := combine.NewSelect(src, combine.Select{Records: []int{8, 7, 6, 5}})
	require.NoError(t, err)
	var named loader.RecordError
	err = v.Gather(t.Context(), "x", []int{3, 1}, make([]byte, 2))
	if named, _ = err.(loader.RecordError); named == nil || named.Record() != 1 {
		t.Errorf("%v, want an error of record 1", err)
	}
}

// TestViewIDs has different views have different identities, and equal ones the same.
func TestViewIDs(t *testing.T) {
	src := combine.Func{Records: 9, Fields: []tensor.Spec{{Name: "x", DType: tensor.Uint8}, {Name: "y", DType: tensor.Uint8}}, Name: "nine"}
	of := func(s combine.Select) string {
		v, err := combine.NewSelect(src, s)
		require.NoError(t, err)
		return v.ID()
	}
	if of(combine.Select{Ranges: [][2]int{{1, 4}}}) != of(combine.Select{Records: []int{1, 2, 3}}) {
		t.Error("the same records, by ranges and by numbers, have two identities")
	}
	seen := map[string]int{}
	for i, s := range []combine.Select{
		{}, {Records: []int{1, 2, 4}}, {Records: []int{1, 4, 2}}, {Ranges: [][2]int{{1, 4}}}, {Fields: []string{"x"}}, {Fields: []string{"y", "x"}},
		{Rename: map[string]string{"x": "z"}}, {Fields: []string{"x"}, Rename: map[string]string{"x": "y"}}, {Fields: []string{"y"}},
	} {
		if k, ok := seen[of(s)]; ok || of(s) == "" {
			t.Errorf("%v has the identity of %d", s, k)
		}
		seen[of(s)] = i
	}
}

// TestViewsRefuse reports records and fields that do not exist.
func TestViewsRefuse(t *testing.T) {
	src := src2(t, 4)
	for want, s := range map[string]combine.Select{
		"Records[1] is in [4, 4]; the Source has 4": {Records: []int{2, 4}},
		"Ranges[0] is [2, 5)":                       {Ranges: [][2]int{{2, 5}}},
		"of Records, Ranges and Set more than one":  {Records: []int{}, Ranges: [][2]int{}},
		`no field "z"; there are: x`:                {Fields: []string{"z"}},
		`Rename has the field "z"`:                  {Rename: map[string]string{"z": "x"}},
		`two fields have the name "x"`:              {Fields: []string{"x", "x"}},
	} {
		if _, err := combine.NewSelect(src, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := combine.NewZip(src, src2(t, 4)); err == nil || !bytes.Contains([]byte(err.Error()), []byte(`source 1: two fields have the name "x"`)) {
		t.Errorf("%v: two fields of one name", err)
	}
	if _, err := combine.NewZip(src, src2(t, 5)); err == nil || !strings.Contains(err.Error(), "source 1 has 5 records, and the first one has 4") {
		t.Errorf("%v: 5 records next to 4", err)
	}
}

// TestSets has the records of a Set be those of its numbers, whatever they are kept as, with the same identity.
func TestSets(t *testing.T) {
	kept := map[string]int{}
	for seed := range uint64(60) {
		r := random(t, seed)
		n := r.IntN(3000)
		if seed < 10 {
			n = 200_000
		}
		words, numbers := make([]uint64, (n+63)/64), []int{}
		rare, long := 1+r.IntN(300), 1+r.IntN(1+r.IntN(4000))
		switch {
		case seed < 3:
			rare, long = 2000, 1 // too far apart for two bytes
		case seed < 20:
			rare, long = 1+r.IntN(50), 1+r.IntN(8)
		}
		for i := 0; i < n; i++ {
			if r.IntN(rare) > 0 {
				continue
			}
			for k := i; i < min(k+long, n); i++ {
				words[i/64] |= 1 << (i % 64)
				numbers = append(numbers, i)
			}
		}
		src := combine.Func{Records: n, Fields: []tensor.Spec{{Name: "x", DType: tensor.Int64}}, Name: "some", Make: func(_ context.Context, record int, _ string, dst tensor.View) error {
			tensor.As[int64](dst)[0] = int64(record)
			return nil
		}}
		of := func(s combine.Select) *combine.View {
			v, err := combine.NewSelect(src, s)
			require.NoError(t, err)
			return v
		}
		v := of(combine.Select{Set: expr.NewSet(n, words)})
		kept[combine.KindOfRows(v)]++
		if v.Len() != len(numbers) || v.ID() != of(combine.Select{Records: numbers}).ID() {
			t.Fatalf("%d records of identity %s, want %d of %s", v.Len(), v.ID(), len(numbers), of(combine.Select{Records: numbers}).ID())
		}
		if v.Len() == 0 {
			continue
		}
		places := make([]int, 200)
		for i := range places {
			places[i] = r.IntN(v.Len())
		}
		got := make([]int64, len(places))
		require.NoError(t, v.Gather(t.Context(), "x", places, tensor.From(got).Bytes()))
		for i, p := range places {
			if int(got[i]) != numbers[p] {
				t.Fatalf("record %d is %d, want %d", p, got[i], numbers[p])
			}
		}
		a := r.IntN(v.Len())
		b := a + r.IntN(min(300, v.Len()-a))
		some, err := v.Slice("x", a, b)
		require.NoError(t, err)
		for i, x := range tensor.As[int64](some) {
			if int(x) != numbers[a+i] {
				t.Fatalf("record %d of a slice is %d, want %d", a+i, x, numbers[a+i])
			}
		}
	}
	if kept["set"] == 0 || kept["runs"] == 0 {
		t.Errorf("records were kept as %v; the test wants a set and runs", kept)
	}
}
