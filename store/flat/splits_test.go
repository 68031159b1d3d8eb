package flat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// addRecords appends records a to b of tokenSchema.
func addRecords(t testing.TB, w store.Writer, a, b int, split func(int) string) {
	t.Helper()
	killNumbered(split).add(t, w, a, b)
}

// killNumbered makes the records of tokenSchema, in those splits if there are any.
func killNumbered(split func(int) string) numbered {
	return numbered{tokenSchema(), func(r *store.Record, i int) {
		fillTokens(r, i)
		if split != nil {
			r.Split = split(i)
		}
	}}
}

// makeDataset writes records a to b with those options.
func makeDataset(t testing.TB, dest string, a, b int, opts Options) *store.Manifest {
	t.Helper()
	split := trainOrVal
	if opts.Splits == nil {
		split = nil
	}
	return killNumbered(split).write(t, dest, a, b, opts, store.Info{Skipped: []store.Skipped{{Sample: fmt.Sprint(a), Reason: "test"}}})
}

// labels returns the numbers of the records in d, in its order.
func labels(t *testing.T, d *store.Dataset) (list []int) {
	t.Helper()
	for b := readAll(t, d, 2); len(b) > 0; b = b[8:] {
		list = append(list, int(b[0])|int(b[1])<<8)
	}
	return list
}

func numbers(a, b int, split string) (list []int) {
	for i := a; i < b; i++ {
		if split == "" || trainOrVal(i) == split {
			list = append(list, i)
		}
	}
	return list
}

var trainVal = []string{"train", "val"}

func TestSplits(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	m := makeDataset(t, dest, 0, 3000, Options{ShardBytes: 1, Splits: trainVal})
	d, err := store.OpenFlat(dest)
	require.NoError(t, err)
	if want := []store.Split{{Name: "train", Ranges: [][2]int64{{0, 2400}}}, {Name: "val", Ranges: [][2]int64{{2400, 3000}}}}; !reflect.DeepEqual(m.Splits, want) {
		t.Errorf("splits %v", m.Splits)
	}
	if got := labels(t, d); !slices.Equal(got, append(numbers(0, 3000, "train"), numbers(0, 3000, "val")...)) {
		t.Error("records are not in the order of the splits")
	}
	for _, name := range trainVal {
		part, err := store.Open(dest, store.OpenOptions{Split: name})
		require.NoError(t, err)
		want := numbers(0, 3000, name)
		if got := labels(t, part); !slices.Equal(got, want) || part.Records != int64(len(want)) || part.Split != name {
			t.Errorf("%s: %d records, want %d", name, len(got), len(want))
		}
		for _, c := range layout.Of(part).Columns {
			if c.Extents[0].SumsPath == "" || c.Extents[0].First != 0 {
				t.Errorf("%s: %+v", name, c.Extents[0])
			}
		}
	}
	if _, err := store.Open(dest, store.OpenOptions{Split: "test"}); err == nil || !strings.Contains(err.Error(), `it has no split "test"; known are train, val`) {
		t.Errorf("unknown split: %v", err)
	}
}

// A split that gets no records exists and is empty.
func TestEmptySplit(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	m := makeDataset(t, dest, 0, 4, Options{Splits: trainVal})
	if m.Splits[1].Records() != 0 || m.Splits[0].Records() != 4 {
		t.Errorf("splits %v", m.Splits)
	}
	if _, err := store.Open(dest, store.OpenOptions{Split: "val"}); err == nil || !strings.Contains(err.Error(), "no records") {
		t.Errorf("got %v", err)
	}
}

func TestWrongSplits(t *testing.T) {
	for _, names := range [][]string{{"a", "a"}, {"../x"}, {""}} {
		if _, err := Create(filepath.Join(t.TempDir(), "ds"), tokenSchema(), Options{Splits: names}); err == nil {
			t.Errorf("%q: no error", names)
		}
	}
	for _, splits := range [][]string{nil, trainVal} {
		w, err := Create(filepath.Join(t.TempDir(), "ds"), tokenSchema(), Options{Splits: splits})
		require.NoError(t, err)
		r := store.NewRecord(tokenSchema())
		r.Split = "test"
		if err := w.Append(r); err == nil || !strings.Contains(err.Error(), `split "test"`) {
			t.Errorf("%q: %v", splits, err)
		}
		require.NoError(t, w.Close())
	}
}

// Appending gives the identity, statistics and builder state of a dataset that was written at once. A
// dataset that is open does not change.
func TestAppend(t *testing.T) {
	for name, splits := range map[string][]string{"plain": nil, "splits": trainVal} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			dest := filepath.Join(dir, "ds")
			opts := Options{ShardBytes: 1, Splits: splits}
			makeDataset(t, dest, 0, 1300, opts)
			before, err := store.OpenFlat(dest)
			require.NoError(t, err)
			opts.Append = true
			m := makeDataset(t, dest, 1300, 1400, opts)
			m2 := makeDataset(t, dest, 1400, 2100, opts)
			once := makeDataset(t, filepath.Join(t.TempDir(), "once"), 0, 2100, Options{ShardBytes: 1, Splits: splits})
			if m2.ID != once.ID || !reflect.DeepEqual(m2.Statistics, once.Statistics) || !bytes.Equal(m2.BuilderState, once.BuilderState) {
				t.Error("identity, statistics or metadata differ from those of a dataset written at once")
			}
			if m.Generation != 2 || m2.Generation != 3 || len(m2.Skipped) != 3 || m2.Skipped[2].Sample != "1400" {
				t.Errorf("generation %d, skipped %v", m2.Generation, m2.Skipped)
			}
			d, err := store.OpenFlat(dest)
			require.NoError(t, err)
			got := labels(t, d)
			slices.Sort(got)
			if !slices.Equal(got, numbers(0, 2100, "")) || !slices.Equal(labels(t, before), labels(t, d)[:1300]) {
				t.Error("the records are not the earlier ones followed by the new ones")
			}
			for _, name := range splits {
				part, err := store.Open(dest, store.OpenOptions{Split: name})
				require.NoError(t, err)
				if got := labels(t, part); !slices.Equal(got, numbers(0, 2100, name)) {
					t.Errorf("split %s has %d records", name, len(got))
				}
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	if _, err := Create(dest, testSchema(), Options{Append: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing to append to: %v", err)
	}
	buildFlat(t, dest, 10, 0)
	for name, c := range map[string]struct {
		change func(*store.Schema)
		splits []string
		says   string
	}{
		"type":        {func(s *store.Schema) { s.Fields[1] = store.NewField("boxes", tensor.Float64, 8) }, nil, `field "boxes" is`},
		"shape":       {func(s *store.Schema) { s.Fields[0].Shape = tensor.Shape{3, 40, 51} }, nil, `field "images" is`},
		"name":        {func(s *store.Schema) { s.Fields[1].Name = "box" }, nil, `they do not have its fields ["boxes"]`},
		"fewer":       {func(s *store.Schema) { s.Fields = s.Fields[:2] }, nil, "they do not have its fields"},
		"more":        {func(s *store.Schema) { s.Fields = append(s.Fields, store.NewField("x", tensor.Uint8)) }, nil, `it does not have their fields ["x"]`},
		"field order": {func(s *store.Schema) { slices.Reverse(s.Fields) }, nil, "in this order"},
		"no classes":  {func(s *store.Schema) { s.Fields[2].Classes = nil }, nil, "without classes"},
		"class order": {func(s *store.Schema) { s.Fields[2].Classes = []string{"dog", "cat", "Jürgen"} }, nil, "the classes"},
		"splits":      {func(*store.Schema) {}, []string{"train"}, "splits are"},
	} {
		s := testSchema()
		c.change(&s)
		if _, err := Create(dest, s, Options{Append: true, Splits: c.splits}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d, err := store.OpenFlat(dest); err != nil || d.Records != 10 {
		t.Errorf("the dataset is not what it was: %v", err)
	}
}

// Classes may be more, at the end.
func TestAppendClasses(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	buildFlat(t, dest, 10, 0)
	s := testSchema()
	s.Fields[2].Classes = append(s.Fields[2].Classes, "emu")
	w, err := Create(dest, s, Options{Append: true})
	require.NoError(t, err)
	defer w.Close()
	r := store.NewRecord(s)
	r.Values[2][0] = 3
	require.NoError(t, w.Append(r))
	m, err := w.Commit(store.Info{})
	require.NoError(t, err)
	if got := m.Statistics["labels"].Labels; !slices.Equal(got, []int64{4, 3, 3, 1}) || len(m.Fields[2].Classes) != 4 {
		t.Errorf("labels %v of %q", got, m.Fields[2].Classes)
	}
}

func TestResumeRefusesAnotherBuild(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "ds")
	first := &store.Journal{Inputs: map[string]string{"source": "a", "recipe": "r"}}
	w, err := Create(dest, tokenSchema(), Options{Journal: first})
	require.NoError(t, err)
	addRecords(t, w, 0, 10, nil)
	require.NoError(t, w.Checkpoint(json.RawMessage(`{"at": 10}`)))
	require.NoError(t, w.Close())
	if !write.Unfinished(dest) {
		t.Error("the build is not known to be unfinished")
	}
	wider := tokenSchema()
	wider.Fields[1].DType, wider.Fields[1].Storage = tensor.Int32, tensor.Int32.Descr()
	for name, c := range map[string]struct {
		schema store.Schema
		opts   Options
		inputs map[string]string
		says   string
	}{
		"source": {tokenSchema(), Options{}, map[string]string{"source": "b", "recipe": "r"}, "another source: a, and not b"},
		"gone":   {tokenSchema(), Options{}, map[string]string{"source": "a"}, "another recipe: r, and not none"},
		"new":    {tokenSchema(), Options{}, map[string]string{"source": "a", "recipe": "r", "seed": "1"}, "another seed: none, and not 1"},
		"size":   {tokenSchema(), Options{ShardBytes: 1}, first.Inputs, "another shard size"},
		"splits": {tokenSchema(), Options{Splits: trainVal}, first.Inputs, "another splits"},
		"schema": {wider, Options{}, first.Inputs, "another schema"},
	} {
		c.opts.Journal = &store.Journal{Inputs: c.inputs, Resume: true}
		if _, err := Create(dest, c.schema, c.opts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w, err = Create(dest, tokenSchema(), Options{Journal: &store.Journal{Inputs: first.Inputs, Resume: true}})
	require.NoError(t, err)
	defer w.Close()
	if k := w.Kept(); !k.Resumed || k.Records != 10 || len(k.Notes) != 1 || string(k.Notes[0]) != `{"at":10}` {
		t.Errorf("kept %+v", k)
	}
}

// Without Resume, or without a journal, a build that was left is removed.
func TestFreshBuildsForget(t *testing.T) {
	for _, journal := range []*store.Journal{nil, {}} {
		dest := filepath.Join(t.TempDir(), "ds")
		w, err := Create(dest, tokenSchema(), Options{Journal: &store.Journal{}})
		require.NoError(t, err)
		addRecords(t, w, 0, 600, nil)
		require.NoError(t, errors.Join(w.Checkpoint(nil), w.Close()))
		w, err = Create(dest, tokenSchema(), Options{Journal: journal})
		require.NoError(t, err)
		if w.Kept().Resumed {
			t.Error("it was resumed")
		}
		addRecords(t, w, 0, 5, nil)
		m, err := w.Commit(store.Info{})
		if err != nil || m.Records != 5 {
			t.Errorf("%+v, %v", m, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) != 1 || write.Unfinished(dest) {
			t.Errorf("left behind: %v", left)
		}
	}
}

// A journal that is cut or changed anywhere is refused, or resumed at an earlier checkpoint
// into the same dataset.
func TestCorruptJournals(t *testing.T) {
	dir := crash.MemoryDir(t)
	whole := makeDataset(t, filepath.Join(dir, "whole"), 0, 1500, Options{ShardBytes: 1})
	kept := filepath.Join(dir, "kept")
	opts := Options{ShardBytes: 1, Journal: &store.Journal{Resume: true}}
	w, err := Create(kept, tokenSchema(), opts)
	require.NoError(t, err)
	for at := 0; at < 1400; at += 200 {
		addRecords(t, w, at, at+200, nil)
		require.NoError(t, w.Checkpoint(nil))
	}
	require.NoError(t, w.Close())
	stage := foldertest.Files(t, stageDir(kept))
	journal := []byte(stage[write.JournalName])
	refused, resumed := 0, 0
	for at := 0; at < len(journal); at += 97 {
		for _, cut := range []bool{false, true} {
			bad := bytes.Clone(journal)
			bad[at] ^= 4
			if cut {
				bad = bad[:at]
			}
			dest := filepath.Join(dir, "corrupt")
			stage[write.JournalName] = string(bad)
			writeFolder(t, stageDir(dest), stage)
			w, err := Create(dest, tokenSchema(), opts)
			if err != nil {
				refused++
				if !errors.Is(err, store.ErrCorrupt) {
					t.Fatalf("byte %d: %v", at, err)
				}
				continue
			}
			resumed++
			addRecords(t, w, int(w.Kept().Records), 1500, nil)
			m, err := w.Commit(store.Info{Skipped: whole.Skipped})
			if err != nil || !reflect.DeepEqual(m, whole) {
				t.Fatalf("byte %d: another dataset, %v", at, err)
			}
			require.NoError(t, errors.Join(w.Close(), os.RemoveAll(dest)))
		}
	}
	if refused == 0 || resumed == 0 {
		t.Errorf("%d refused, %d resumed", refused, resumed)
	}
}

// Files of the stage that are not what the journal says are refused.
func TestCorruptStage(t *testing.T) {
	dir := crash.MemoryDir(t)
	opts := Options{ShardBytes: 1, Journal: &store.Journal{Resume: true}}
	kept := filepath.Join(dir, "kept")
	w, err := Create(kept, tokenSchema(), opts)
	require.NoError(t, err)
	addRecords(t, w, 0, 700, nil)
	require.NoError(t, errors.Join(w.Checkpoint(nil), w.Close()))
	for name, data := range foldertest.Files(t, stageDir(kept)) {
		if name == write.JournalName {
			continue
		}
		stage := foldertest.Files(t, stageDir(kept))
		stage[name] = data[:len(data)-1]
		dest := filepath.Join(dir, "corrupt")
		writeFolder(t, stageDir(dest), stage)
		if _, err := Create(dest, tokenSchema(), opts); err == nil {
			t.Errorf("%s cut by a byte: resumed", name)
		}
		delete(stage, name)
		writeFolder(t, stageDir(dest), stage)
		if _, err := Create(dest, tokenSchema(), opts); err == nil {
			t.Errorf("%s missing: resumed", name)
		}
	}
}

// writeFolder makes a folder of those files and no others.
func writeFolder(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	require.NoError(t, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o777)))
	for name, data := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666))
	}
}
