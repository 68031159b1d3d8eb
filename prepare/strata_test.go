package prepare

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/store"
)

var strataCases = flag.Int("strata", 12, "random tables of TestStratifyTables")

// table is a source in memory: contents with their labels.
type table struct {
	contents []int
	labels   []string
}

// randomTable returns up to 200 rows in which contents come up to four times, in any order.
func randomTable(r *rand.Rand) (t table) {
	names := []string{"7", "-3", "0", "100000"} // as they are, or as words
	if r.IntN(2) == 0 {
		names = []string{"ant", "bee", "cat", "dog", "elk"}
	}
	for n := range 1 + r.IntN(100) {
		label := names[r.IntN(len(names))]
		for range 1 + r.IntN(1+r.IntN(4)) {
			t.contents, t.labels = append(t.contents, n), append(t.labels, label)
		}
	}
	r.Shuffle(len(t.contents), func(i, j int) {
		t.contents[i], t.contents[j] = t.contents[j], t.contents[i]
		t.labels[i], t.labels[j] = t.labels[j], t.labels[i]
	})
	return t
}

// write writes rows [from, to) as csv or jsonl.
func (t table) write(tb testing.TB, kind string, from, to int) string {
	tb.Helper()
	var b bytes.Buffer
	if kind == "csv" {
		b.WriteString("content,label\n")
	}
	for i := from; i < to; i++ {
		if kind == "csv" {
			fmt.Fprintf(&b, "%d,%s\n", t.contents[i], t.labels[i])
			continue
		}
		fmt.Fprintf(&b, `{"content": %d, "label": %q}`+"\n", t.contents[i], t.labels[i])
	}
	path := filepath.Join(tb.TempDir(), "rows."+kind)
	require.NoError(tb, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

// check makes sure that copies are on one side, and that each class has its shares of contents to within one.
func (t table) check(tb testing.TB, what string, c Config) {
	tb.Helper()
	d, err := store.OpenFlat(c.Dest)
	require.NoError(tb, err)
	label := make(map[int]string)
	for i, n := range t.contents {
		label[n] = t.labels[i]
	}
	side, counts, totals := make(map[int64]string), make(map[string]map[string]float64), make(map[string]float64)
	for _, l := range label {
		totals[l]++
		counts[l] = make(map[string]float64)
	}
	for _, s := range d.Manifest.Splits {
		for _, r := range s.Ranges {
			for i := r[0]; i < r[1]; i++ {
				n := numberAt(tb, d, 0, i)
				if before, ok := side[n]; ok && before != s.Name {
					tb.Fatalf("%s: content %d is in %s and in %s", what, n, before, s.Name)
				} else if !ok {
					side[n] = s.Name
					counts[label[int(n)]][s.Name]++
				}
			}
		}
	}
	for l, total := range totals {
		for _, p := range c.Split {
			if off := counts[l][p.Name] - p.Share*total; math.Abs(off) > 1+1e-6 {
				tb.Fatalf("%s: split %s is %v records off its share of the %v of class %s", what, p.Name, off, total, l)
			}
		}
	}
}

// Tables of random labels, numbers and words, with copies: read at once, appended, resumed, by ranks.
func TestStratifyTables(t *testing.T) {
	ways := []string{"run", "append", "ranks", "dedup", "shuffle", "stop"}
	for k := range *strataCases {
		r := rand.New(rand.NewPCG(uint64(k), 2))
		rows := randomTable(r)
		kind, way := []string{"csv", "jsonl"}[r.IntN(2)], ways[k%len(ways)]
		what := fmt.Sprintf("case %d, %s, %s", k, kind, way)
		n := len(rows.contents)
		c := plain(t, rows.write(t, kind, 0, n))
		c.Fields, c.Workers = "content:int64,label:label", 1+r.IntN(4)
		c.Split, _ = samples.ParseSplit([]string{"train=0.8,val=0.2", "a=0.5,b=0.5", "train=0.7,val=0.2,test=0.1"}[r.IntN(3)])
		c.Stratify.Wanted = true
		switch way {
		case "append":
			if n < 2 || rows.words() { // classes of the first rows only
				continue
			}
			cut := 1 + r.IntN(n-1)
			first := c
			first.Source = rows.write(t, kind, 0, cut)
			mustRun(t, first)
			c.Source, c.Append = rows.write(t, kind, cut, n), true
		case "dedup":
			c.Dedup = true
		case "shuffle":
			c.Shuffle = Seed{true, uint64(k)}
		case "ranks":
			for i := range 3 {
				p := c
				if p.Rank, _ = part.ParseRank(fmt.Sprint(i), "3"); p.Rank.Size != 3 {
					t.Fatal("no rank")
				}
				mustRun(t, p)
			}
			if _, err := Merge(context.Background(), MergeConfig{Dest: c.Dest}, &rawtest.Silent{}); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			rows.check(t, what, c)
			continue
		case "stop":
			stopEarly(t, c, int64(1+r.IntN(n)))
			c.Resume = true
		}
		s := mustRun(t, c)
		if s.Stratified == nil || s.Stratified.Field != "label" {
			t.Fatalf("%s: the summary says %+v", what, s.Stratified)
		}
		rows.check(t, what, c)
	}
}

func (t table) words() bool { return t.labels[0][0] >= 'a' }

// stopEarly runs c until n samples are done.
func stopEarly(t *testing.T, c Config, n int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.Checkpoint = 1
	_, err := Run(ctx, c, &rawtest.Silent{F: func(done int64) {
		if done >= n {
			cancel()
		}
	}})
	if err == nil { // all was done before it was seen
		require.NoError(t, os.RemoveAll(c.Dest))
	}
}

// Which field holds the classes is asked where it is not known.
func TestStratifyField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	text := "id,age,city,churn,score\n"
	for i := range 100 {
		text += fmt.Sprintf("%d,%d,%s,%s,%d.5\n", i, i%7, []string{"x", "y"}[i%2], []string{"no", "yes"}[i/90], i)
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	for _, test := range []struct {
		fields, by string
		want       string // the field, or
		err        string
	}{
		{fields: "id,city:label", by: "true", want: "city"},
		{fields: "city:label,churn:label", by: "true", err: "--stratify: several fields hold classes, city, churn; choose one: --stratify=city"},
		{fields: "city:label,churn:label,score", by: "churn", want: "churn"},
		{fields: "city:label,age", by: "age", want: "age"},
		{fields: "age:label,id", by: "true", want: "age"},
		{fields: "age=y,id", by: "true", want: "y"},
		{fields: "age,score", by: "true", err: "no field is known to hold classes, but age could: --stratify=age"},
		{fields: "id,age,score", by: "true", err: "no field is known to hold classes, but id, age could: --stratify=id"},
		{fields: "score,city", by: "true", err: "no field holds classes, which are integers; there are score, city"},
		{fields: "score,city:label", by: "score", err: "is not one integer a record, as classes are; make it a label: --fields 'score:label'"},
		{fields: "score,city:label", by: "citi", err: `there is no field "citi"; did you mean`},
	} {
		c := plain(t, path)
		c.Fields = test.fields
		c.Split, _ = samples.ParseSplit("train=0.8,val=0.2")
		require.NoError(t, c.Stratify.Set(test.by))
		s, err := Run(context.Background(), c, &rawtest.Silent{})
		switch {
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s by %s: %v, want %s", test.fields, test.by, err, test.err)
		case test.err == "" && err != nil:
			t.Errorf("%s by %s: %v", test.fields, test.by, err)
		case err == nil && s.Stratified.Field != test.want:
			t.Errorf("%s by %s: by %s, want %s", test.fields, test.by, s.Stratified.Field, test.want)
		}
	}
}

// Images without class folders have no classes, and numbers that all differ are none.
func TestStratifyRefused(t *testing.T) {
	c := config(t, filepath.Join(rawtest.Folder(t, 4), "cat"))
	c.Split, _ = samples.ParseSplit("train=0.5,val=0.5")
	c.Stratify.Wanted = true
	if text := runError(t, c); !strings.Contains(text, "--stratify: no field holds classes") {
		t.Error(text)
	}
	var b strings.Builder
	b.WriteString("id\n")
	for i := range field.MaxStrata + 1 {
		fmt.Fprintln(&b, i)
	}
	path := filepath.Join(t.TempDir(), "ids.csv")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o666))
	ids := plain(t, path)
	ids.Split, ids.Stratify = c.Split, field.Strata{Wanted: true, Field: "id"}
	if _, err := Run(context.Background(), ids, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "the field id has more than 65536 different values") {
		t.Error(err)
	}
}

// The flag has a field, or none; recipes have the text that it reads.
func TestStrataFlag(t *testing.T) {
	for text, want := range map[string]field.Strata{"": {}, "false": {}, "true": {Wanted: true}, "city": {Wanted: true, Field: "city"}} {
		var s field.Strata
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
		var again field.Strata
		if err := again.Set(s.String()); err != nil || again != want {
			t.Errorf("%q becomes %q, and that %+v", text, s.String(), again)
		}
		var back field.Strata
		if b, err := json.Marshal(s); err != nil || json.Unmarshal(b, &back) != nil || back != s {
			t.Errorf("%q: JSON %+v", text, back)
		}
	}
	m := &store.Manifest{Splits: []store.Split{{Name: "a", Ranges: [][2]int64{{0, 2}, {5, 6}}}, {Name: "b", Ranges: [][2]int64{{2, 5}}}}}
	var got []string
	for at := range int64(7) {
		got = append(got, splitsOf(m.Splits)(at))
	}
	if want := []string{"a", "a", "b", "b", "b", "a", ""}; !slices.Equal(got, want) {
		t.Errorf("splits are %q, want %q", got, want)
	}
}
