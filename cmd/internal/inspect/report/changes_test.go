package report

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// multiples are the values of a float32 column: each of 60 records has its number times factor.
func multiples(factor float32) edit.Values {
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := first; i < 60 && yield(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(i)*factor)), nil); i++ {
			}
		}
	}
}

// editedZoo is a zoo of seven generations.
func editedZoo(t testing.TB) string {
	t.Helper()
	path := zoo(t)
	by := edit.Options{By: "a <test>"}
	weight, age := store.NewField("weight", tensor.Float32), store.NewField("age", tensor.Float32)
	did := func(_ *store.Manifest, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	did(edit.AddColumn(path, weight, multiples(1), by))
	did(edit.AddColumn(path, age, multiples(2), by))
	did(edit.SetColumn(path, weight, multiples(3), by))
	did(edit.RenameColumn(path, "age", "years", by))
	gone, err := edit.Choose(path, 0, []int64{0, 2, 4, 59})
	did(nil, err)
	did(edit.Delete(path, gone, by))
	m, err := store.ReadManifest(path)
	did(m, err)
	w, err := flat.Create(path, m.Schema(), flat.Options{Append: true, Splits: []string{"train", "val"}})
	did(nil, err)
	defer w.Close()
	r := store.NewRecord(m.Schema())
	r.Split = "val"
	did(nil, errors.Join(w.Append(r), w.Append(r)))
	_, err = w.Commit(store.Info{})
	did(nil, err)
	return path
}

func TestChanges(t *testing.T) {
	path := editedZoo(t)
	c := compile(t, path, Options{Against: "2"}).Changes
	columns := []ColumnChange{{"weight", "values"}, {"years", "added"}}
	if !reflect.DeepEqual(c.Columns, columns) || c.Records != (RecordChanges{60, 58, 2, 4, 0}) || c.Pruned != 0 {
		t.Errorf("%+v", c)
	}
	var done []string
	for _, s := range c.Steps {
		done = append(done, s.Done)
	}
	if want := []string{"append", "delete 4 records", "rename column age, years", "set column weight", "add column age"}; !slices.Equal(done, want) ||
		c.Steps[1].By != "a <test>" {
		t.Errorf("steps %+v", c.Steps)
	}
	for _, f := range c.Fields {
		if f.Name == "weight" && (f.Before.Moments.Max != 59 || f.After.Moments.Max != 3*58) ||
			f.Name == "years" && (f.Before != nil || f.After.Moments.Max != 2*58) {
			t.Errorf("%s: %+v, %+v", f.Name, f.Before, f.After)
		}
	}
	differ, same := classCounts(c.Fields[slices.IndexFunc(c.Fields, func(f FieldChange) bool { return f.Name == "labels" })])
	if want := []classCount{{"<b>cat</b>", 30, 29}, {"dog", 30, 29}}; !slices.Equal(differ, want) || same != 0 {
		t.Errorf("%+v, %d", differ, same)
	}
	if c = compile(t, path+"@5", Options{Against: "3"}).Changes; len(c.Fields) != 1 || c.Records.any() ||
		!reflect.DeepEqual(c.Columns, []ColumnChange{{"weight", "values"}, {"years", "renamed from age"}}) {
		t.Errorf("%+v", c)
	}
}

// A column that was renamed and then set is the same column with other values, until the steps in between are pruned.
func TestChangesOfRenamedColumns(t *testing.T) {
	path := zoo(t)
	weight, mass := store.NewField("weight", tensor.Float32), store.NewField("mass", tensor.Float32)
	for _, err := range []error{
		second(edit.AddColumn(path, weight, multiples(1), edit.Options{})),
		second(edit.RenameColumn(path, "weight", "mass", edit.Options{})),
		second(edit.SetColumn(path, mass, multiples(2), edit.Options{})),
		second(edit.AddColumn(path, weight, multiples(3), edit.Options{})),
		second(edit.RenameColumn(path, "labels", "kinds", edit.Options{})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := compile(t, path, Options{Against: "2"}).Changes
	want := []ColumnChange{{"kinds", "renamed from labels"}, {"mass", "renamed from weight; values"}, {"weight", "added"}}
	if !reflect.DeepEqual(c.Columns, want) {
		t.Errorf("%+v", c.Columns)
	}
	if len(c.Fields) != 2 || c.Fields[0].Before.Moments.Max != 59 || c.Fields[0].After.Moments.Max != 2*59 {
		t.Errorf("%+v", c.Fields)
	}
	if err := errors.Join(edit.Tag(path, "first", 2), second(edit.Prune(path, edit.PruneOptions{}))); err != nil {
		t.Fatal(err)
	}
	c = compile(t, path, Options{Against: "first"}).Changes
	want = []ColumnChange{{"kinds", "renamed from labels"}, {"mass", "added"}, {"weight", "values"}}
	if !reflect.DeepEqual(c.Columns, want) || c.Pruned == 0 {
		t.Errorf("%+v", c)
	}
}

// Steps that were pruned are counted, and a restored generation takes columns and records back.
func TestChangesOfRestoredAndPruned(t *testing.T) {
	path := editedZoo(t)
	for _, err := range []error{edit.Tag(path, "all", 7), second(edit.Restore(path, "1", edit.Options{})), second(edit.Prune(path, edit.PruneOptions{}))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := compile(t, path, Options{Against: path + "@all"}).Changes
	if c.Before != 7 || c.After != 8 || c.Records != (RecordChanges{58, 60, 0, 2, 4}) || c.Pruned != 0 ||
		!reflect.DeepEqual(c.Columns, []ColumnChange{{"weight", "dropped"}, {"years", "dropped"}}) {
		t.Errorf("%+v", c)
	}
	html := page(t, compile(t, path, Options{Against: "all"}))
	for _, want := range []string{"Changes from generation 7 to 8", "restore 1", "not there", `href="#changes"`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAgainstRefusals(t *testing.T) {
	path, out := editedZoo(t), filepath.Join(t.TempDir(), "r.html")
	for against, want := range map[string]string{
		"": "--against needs the number of a generation or a tag", "7": "not earlier than generation 7 of the report",
		"9": "it keeps no generation 9", "base": `it has no tag "base"`, zoo(t): "it is not a generation of",
		zoo(t) + "@1": "to compare two datasets, run: penstock diff", "0": "it keeps no generation 0",
	} {
		var stdout, stderr strings.Builder
		if code := cli.Run(Command(), []string{"-o", out, "--against", against, path}, strings.NewReader(""), &stdout, &stderr); code == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, %s", against, code, &stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%s: a page is written", against)
		}
	}
}
