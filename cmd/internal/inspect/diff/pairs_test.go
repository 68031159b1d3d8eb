package diff

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// named are numbers and names of records.
var named = func() store.Schema {
	names := store.NewRagged(layout.SourceNameField, tensor.Uint8)
	names.Content = tensor.SourceName
	return store.Schema{Fields: []store.Field{store.NewField("x", tensor.Int64), names}}
}()

// fillNamed makes record i of number x and a name of it, the first 900 in one split.
func fillNamed(x func(i int) int) func(i int, r *store.Record) {
	return func(i int, r *store.Record) {
		binary.LittleEndian.PutUint64(r.Values[0], uint64(x(i)))
		r.Values[1] = fmt.Appendf(nil, "%04d.jpg", x(i))
		if r.Split = "train"; x(i) >= 900 {
			r.Split = "val"
		}
	}
}

func same(i int) int { return i }

// changed says what a comparison found, in short.
func changed(c *Comparison) string {
	text := fmt.Sprintf("by %s: %d, -%d%v +%d%v", c.By, c.Records, c.Deleted.Records, c.Deleted.First, c.Added.Records, c.Added.First)
	for _, v := range c.Values {
		text += fmt.Sprintf(", %s %d", v.Field, v.Records)
	}
	for _, d := range c.Differences {
		if d.What == "splits" {
			text += ", splits"
		}
	}
	return text
}

// Records of generations are compared with themselves, whatever was deleted, appended, set and restored in between.
func TestDiffOfGenerations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ds")
	w, err := flat.Create(path, named, flat.Options{Splits: []string{"train", "val"}})
	require.NoError(t, err)
	datasettest.Write(t, w, named, 1000, store.Info{}, fillNamed(same))
	did := func(_ *store.Manifest, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	check := func(a, b string, want string) {
		t.Helper()
		c := diff(t, a, b, Options{})
		if got := changed(c); got != want || c.Same {
			t.Errorf("%s\ngot  %s\nwant %s", filepath.Base(a)+" "+filepath.Base(b), got, want)
		}
	}
	chosen := func(generation int, numbers ...int64) edit.Chosen {
		c, err := edit.At(path).Choose(generation, numbers)
		require.NoError(t, err)
		return c
	}

	did(edit.At(path).Delete(chosen(0, 500), edit.Options{})) // 2
	check(path+"@1", path, "by stored place: 999, -1[{500 0500.jpg}] +0[], x 0")
	check(path, path+"@1", "by stored place: 999, -0[] +1[{500 0500.jpg}], x 0")
	var b strings.Builder
	c := diff(t, path+"@1", path, Options{})
	if err := c.Render(&b); err != nil || !strings.Contains(b.String(),
		"deleted: 1 record\n  500 (0500.jpg)\nno value differs, of 999 records compared by stored place\n") {
		t.Errorf("%v\n%s", err, &b)
	}

	values := func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := first; i < 999; i++ {
				x := i
				if i >= 500 {
					x++
				}
				if i == 3 || i == 600 || i == 601 {
					x = -x
				}
				if !yield(binary.LittleEndian.AppendUint64(nil, uint64(x)), nil) {
					return
				}
			}
		}
	}
	did(edit.At(path).SetColumn(named.Fields[0], values, edit.Options{})) // 3
	check(path+"@2", path, "by stored place: 999, -0[] +0[], x 3")
	check(path+"@1", path, "by stored place: 999, -1[{500 0500.jpg}] +0[], x 3")
	if c := diff(t, path+"@1", path, Options{}); *c.Values[0].First != 3 {
		t.Errorf("record %d is the first that differs", *c.Values[0].First)
	}
	did(edit.At(path).Undelete(chosen(1, 500), edit.Options{})) // 4
	check(path+"@1", path, "by stored place: 1000, -0[] +0[], x 3")
	check(path+"@3", path, "by stored place: 999, -0[] +1[{500 0500.jpg}], x 0")
	did(edit.At(path).Delete(chosen(0, 0, 950), edit.Options{})) // 5
	check(path+"@2", path, "by stored place: 997, -2[{0 0000.jpg} {949 0950.jpg}] +1[{499 0500.jpg}], x 3")

	more := func(first int) {
		t.Helper()
		w, err := flat.Create(path, named, flat.Options{Splits: []string{"train", "val"}, Append: true})
		require.NoError(t, err)
		datasettest.Write(t, w, named, 2, store.Info{}, fillNamed(func(i int) int { return first + i }))
	}
	more(2000) // 6
	check(path+"@5", path, "by stored place: 998, -0[] +2[{998 2000.jpg} {999 2001.jpg}], x 0")
	did(edit.At(path).Restore("1", edit.Options{})) // 7, and others go where the two were
	more(3000)                                      // 8
	check(path+"@6", path, "by stored place: 998, -2[{998 2000.jpg} {999 2001.jpg}] "+
		"+4[{0 0000.jpg} {950 0950.jpg} {1000 3000.jpg} {1001 3001.jpg}], x 3")
}

// Generations of a dataset in a bucket are fetched to folders of their own.
func TestDiffOfFetchedGenerations(t *testing.T) {
	path := datasettest.Animals(t)
	old := filepath.Join(t.TempDir(), "old")
	require.NoError(t, os.CopyFS(old, os.DirFS(path)))
	chosen, err := edit.At(path).Choose(0, []int64{7})
	if err == nil {
		_, err = edit.At(path).Delete(chosen, edit.Options{})
	}
	require.NoError(t, err)
	c := diff(t, old, path, Options{Origins: []string{"s3://b/animals@1", "s3://b/animals?region=eu-west-1"}})
	if got, want := changed(c), "by stored place: 599, -1[{7 }] +0[], images 0, labels 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c = diff(t, old, path, Options{Origins: []string{"s3://b/animals@1", "s3://c/animals"}})
	if got, want := changed(c), "by position: 599, -1[{599 }] +0[], images 592, labels 592"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Records of other datasets are compared by their names, if these tell them apart.
func TestDiffByNames(t *testing.T) {
	build := func(n int, fill func(i int, r *store.Record)) string {
		return datasettest.BuildFlat(t, named, flat.Options{Splits: []string{"train", "val"}}, n, store.Info{}, fill)
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(1000)
	twice := func(i int, r *store.Record) {
		fillNamed(same)(i, r)
		if i == 999 {
			copy(r.Values[1], "0000")
		}
	}
	moved := func(i int, r *store.Record) {
		if fillNamed(same)(i, r); i == 7 {
			r.Split = "val"
		}
	}
	original := build(1000, fillNamed(same))
	for _, c := range []struct{ other, want string }{
		{build(1000, fillNamed(same)), "by source name: 1000, -0[] +0[], x 0"},
		{build(1000, fillNamed(func(i int) int { return order[i] })), "by source name: 1000, -0[] +0[], x 0"},
		{build(999, fillNamed(func(i int) int { return (i + 1) })), "by source name: 999, -1[{0 0000.jpg}] +0[], x 0"},
		{build(1000, fillNamed(func(i int) int { return i + 1 })),
			"by source name: 999, -1[{0 0000.jpg}] +1[{999 1000.jpg}], x 0"},
		{build(1000, moved), "by source name: 1000, -0[] +0[], x 0, splits"},
		{build(1000, twice), "by position: 1000, -0[] +0[], x 0"},
		{build(2, fillNamed(func(i int) int { return 5000 + i })),
			"by position: 2, -998[" + strings.Join(list(2, 12), " ") + "] +0[], x 2, splits"},
	} {
		d := diff(t, original, c.other, Options{})
		if got := changed(d); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	d := diff(t, original, build(1000, fillNamed(func(i int) int { return order[i] })), Options{Data: true})
	if !d.Same {
		t.Errorf("in another order: %s", changed(d))
	}
}

func list(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("{%d %04d.jpg}", i, i))
	}
	return out
}

// Any two of random generations differ in what a look at each record finds.
func TestDiffOfRandomGenerations(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 40 + rng.IntN(150)
		path := datasettest.BuildFlat(t, named, flat.Options{Splits: []string{"train", "val"}}, n, store.Info{},
			func(i int, r *store.Record) {
				fillNamed(same)(i, r)
				r.Split = []string{"train", "val"}[rng.IntN(2)]
			})
		generations := 1
		for range 5 {
			ds, err := mmapds.Open(path)
			require.NoError(t, err)
			var some []int64
			for i := range ds.Len() {
				if rng.IntN(8) == 0 {
					some = append(some, int64(i))
				}
			}
			ds.Close()
			chosen, err := edit.At(path).Choose(0, some)
			if err == nil && rng.IntN(3) > 0 {
				_, err = edit.At(path).Delete(chosen, edit.Options{})
			} else if chosen, err = edit.At(path).Choose(1, []int64{int64(rng.IntN(n))}); err == nil {
				_, err = edit.At(path).Undelete(chosen, edit.Options{})
			}
			if err == nil {
				generations++
			}
		}
		for range 6 {
			at := [2]string{}
			var records [2]map[int]int // numbers by stored places
			split := []string{"", "train", "val"}[rng.IntN(3)]
			for k := range at {
				at[k] = fmt.Sprintf("%s@%d", path, 1+rng.IntN(generations))
				ds, err := mmapds.Open(at[k], mmapds.WithSplit(split))
				require.NoError(t, err)
				records[k] = make(map[int]int)
				for i := range ds.Len() {
					records[k][ds.Stored(i)] = i
				}
				ds.Close()
			}
			var deleted, added int64
			for place := range records[0] {
				if _, both := records[1][place]; !both {
					deleted++
				}
			}
			for place := range records[1] {
				if _, both := records[0][place]; !both {
					added++
				}
			}
			opts := Options{Selection: dataset.Selection{Split: split}, Workers: 1 + rng.IntN(3)}
			c := diff(t, at[0], at[1], opts)
			if c.Deleted.Records != deleted || c.Added.Records != added || c.Records != int64(len(records[0]))-deleted ||
				c.Values[0].Records > 0 || strings.HasSuffix(changed(c), "splits") {
				t.Errorf("seed %d, %s and %s, split %q: %s; want -%d +%d", seed, at[0], at[1], split, changed(c), deleted, added)
			}
		}
	}
}
