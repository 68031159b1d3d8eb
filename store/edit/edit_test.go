package edit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func TestMain(m *testing.M) {
	if os.Getenv(cacheEnv) != "" { // the tests have started this process
		os.Exit(main(m))
	}
	dir, err := os.MkdirTemp("", "cache")
	if err == nil {
		err = errors.Join(os.Setenv("XDG_CACHE_HOME", dir), os.Setenv(cacheEnv, dir))
	}
	if err != nil {
		panic(err)
	}
	code := main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// cacheEnv is set where the cache of mirrors is a folder of the tests.
const cacheEnv = "PENSTOCK_TEST_CACHE"

// Fields of the tests: three that datasets have at first, and more that are added.
var (
	pages  = store.NewField("pages", tensor.Uint8, 4096)
	labels = func() store.Field {
		f := store.NewField("labels", tensor.Int64)
		f.Classes = []string{"cat", "dog", "emu"}
		return f
	}()
	tokens = store.NewRagged("tokens", tensor.Int32)
	emb    = store.NewField("emb", tensor.Float32, 3)
)

const records = 23

// value returns that of record i of a field, another one for each version.
func value(f store.Field, version, i int) (b []byte) {
	rows, size := 1, f.RecordBytes()
	if f.Ragged {
		rows = (i*7 + version) % 5
	}
	for k := range rows * size / f.DType.Size() {
		n := version*1000 + i*10 + k
		switch f.DType {
		case tensor.Uint8:
			b = append(b, byte(n))
		case tensor.Int32:
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		case tensor.Int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(n%3))
		case tensor.Float32:
			b = binary.LittleEndian.AppendUint32(b, 0x3f800000+uint32(n))
		}
	}
	return b
}

func valuesOf(f store.Field, version int) Values { return valuesIn(false, f, version, records) }

// valuesIn returns values up to a record, in the order that the records have in a dataset with splits or without.
func valuesIn(splits bool, f store.Field, version int, stop int64) Values {
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := first; i < stop; i++ {
				if !yield(value(f, version, sample(splits, int(i))), nil) {
					return
				}
			}
		}
	}
}

// splitOf spreads records over splits, so that they are not in the order of the shards.
func splitOf(i int) string { return []string{"train", "val"}[i%4/3] }

// sample returns the number of the value that record i has.
func sample(splits bool, i int) int {
	if !splits {
		return i
	}
	var order []int
	for _, split := range []string{"train", "val"} {
		for k := range records {
			if splitOf(k) == split {
				order = append(order, k)
			}
		}
	}
	return order[i]
}

// makeDataset makes a dataset of those fields, in shards of a few records.
func makeDataset(t testing.TB, dest string, splits bool, fields ...store.Field) *store.Manifest {
	t.Helper()
	schema := store.Schema{Fields: fields}
	opts := flat.Options{ShardBytes: 4 * 4096}
	if splits {
		opts.Splits = []string{"train", "val"}
	}
	m, err := appendTo(dest, schema, opts, 0)
	require.NoError(t, err)
	return m
}

func appendTo(dest string, schema store.Schema, opts flat.Options, version int) (*store.Manifest, error) {
	w, err := flat.Create(dest, schema, opts)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range records {
		for k, f := range schema.Fields {
			r.Values[k] = append(r.Values[k][:0], value(f, version, i)...)
		}
		if opts.Splits != nil {
			r.Split = splitOf(i)
		}
		if err := w.Append(r); err != nil {
			return nil, err
		}
	}
	return w.Commit(store.Info{})
}

// makeIn makes a dataset of the records of makeDataset in a container.
func makeIn(t testing.TB, in container, dest string, fields ...store.Field) {
	t.Helper()
	schema := store.Schema{Fields: fields}
	w, err := in.create(dest, schema, false)
	require.NoError(t, err)
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range records {
		for k, f := range fields {
			r.Values[k] = append(r.Values[k][:0], value(f, 0, i)...)
		}
		require.NoError(t, w.Append(r))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
}

// identities returns inode and time of change of every file below a folder, in words.
func identities(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for name := range foldertest.Files(t, folder) {
		info, err := os.Stat(filepath.Join(folder, name))
		require.NoError(t, err)
		all[name] = fmt.Sprint(inode(info), info.Size(), info.ModTime())
	}
	return all
}

// A dataset with a column added equals one that was written with it: the same id and the same statistics. All earlier
// files stay, and only the column and metadata are written.
func TestAddColumnIsAsIfWritten(t *testing.T) {
	for _, splits := range []bool{false, true} {
		dir := t.TempDir()
		want := makeDataset(t, filepath.Join(dir, "whole"), splits, pages, labels, emb, tokens)
		ds := filepath.Join(dir, "ds")
		makeDataset(t, ds, splits, pages, labels)
		before := identities(t, ds)
		if _, err := At(ds).AddColumn(emb, valuesIn(splits, emb, 0, records), Options{By: "a test"}); err != nil {
			t.Fatal(err)
		}
		got, err := At(ds).AddColumn(tokens, valuesIn(splits, tokens, 0, records), Options{})
		require.NoError(t, err)
		if got.ID != want.ID || fmt.Sprint(got.Statistics["emb"]) != fmt.Sprint(want.Statistics["emb"]) || got.Generation != 3 {
			t.Errorf("splits %v: id %s, want %s", splits, got.ID, want.ID)
		}
		for name, was := range before {
			if is := identities(t, ds)[name]; name != "manifest.json" && is != was {
				t.Errorf("%s was changed", name)
			}
		}
		if r, corrupt := datasettest.Verify(t, ds); len(corrupt) > 0 || !r.Identity {
			t.Errorf("%v", corrupt)
		}
		first, err := store.ReadManifest(ds + "@2")
		if err != nil || first.Change.By != "a test" || first.Change.Operation != "add column" || first.Parent != 1 ||
			first.Change.Time == nil {
			t.Errorf("generation 2: %v, %v", first, err)
		}
	}
}

// Renamed and dropped columns cost no file, and the id is that of a dataset that was written so.
func TestRenameAndDrop(t *testing.T) {
	dir := t.TempDir()
	class := labels
	class.Name = "class"
	want := makeDataset(t, filepath.Join(dir, "whole"), true, pages, class)
	ds := filepath.Join(dir, "ds")
	makeDataset(t, ds, true, pages, labels, emb)
	files := len(identities(t, ds))
	if _, err := At(ds).RenameColumn("labels", "class", Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := At(ds).DropColumn([]string{"emb"}, Options{})
	require.NoError(t, err)
	if got.ID != want.ID || got.Version != 3 {
		t.Errorf("id %s, want %s; version %d", got.ID, want.ID, got.Version)
	}
	if n := len(identities(t, ds)); n != files+3 {
		t.Errorf("%d files, and there were %d", n, files)
	}
	datasettest.Verify(t, ds)
}

// Errors say what to do, and leave nothing.
func TestRefusals(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, false, pages, labels)
	before := foldertest.Files(t, ds)
	bad := store.NewField("labels", tensor.Int64)
	short := func(int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield(value(emb, 0, 0), nil) }
	}
	failing := func(int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield(nil, errors.New("no model")) }
	}
	wrong := func(int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield([]byte{1}, nil) }
	}
	for _, c := range []struct {
		says string
		do   func() error
	}{
		{"it has a column \"labels\" already; set replaces one", func() error { return second(At(ds).AddColumn(bad, valuesOf(bad, 0), Options{})) }},
		{"it has no column \"emb\"; add makes one", func() error { return second(At(ds).SetColumn(emb, valuesOf(emb, 0), Options{})) }},
		{"there are 1 values, and the dataset has 23 records", func() error { return second(At(ds).AddColumn(emb, short, Options{})) }},
		{"no model", func() error { return second(At(ds).AddColumn(emb, failing, Options{})) }},
		{"record 0: a value of 1 bytes; a value of float32 (3,) has 12 bytes", func() error { return second(At(ds).AddColumn(emb, wrong, Options{})) }},
		{"it has no column \"x\"; it has pages, labels", func() error { return second(At(ds).DropColumn([]string{"x"}, Options{})) }},
		{"a dataset needs a column", func() error { return second(At(ds).DropColumn([]string{"pages", "labels"}, Options{})) }},
		{"it has a column \"labels\" already", func() error { return second(At(ds).RenameColumn("pages", "labels", Options{})) }},
		{"it keeps no generation 7", func() error { return second(At(ds).Restore("7", Options{})) }},
		{"it has no tag \"best\"", func() error { return second(At(ds).Restore("best", Options{})) }},
		{"not a number", func() error { return At(ds).Tag("12", 1) }},
		{"only the newest generation can be changed", func() error { return second(At(ds+"@1").DropColumn([]string{"labels"}, Options{})) }},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
	if after := foldertest.Files(t, ds); !maps.Equal(before, after) {
		t.Errorf("files were left: %v", len(after)-len(before))
	}
}

func second(_ *store.Manifest, err error) error { return err }

// A column whose writer stops keeps its values, and a later writer continues after them.
func TestColumnIsResumed(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, true, pages)
	opts := Options{Journal: &store.Journal{Resume: true}}
	for _, stop := range []int64{3, 11, records} {
		from := int64(-1)
		_, err := At(ds).AddColumn(tokens, func(first int64) iter.Seq2[[]byte, error] {
			from = first
			return valuesIn(true, tokens, 0, stop)(first)
		}, opts)
		if want := map[int64]int64{3: 0, 11: 3, records: 11}[stop]; from != want || (err == nil) != (stop == records) {
			t.Fatalf("began at %d, want %d: %v", from, want, err)
		}
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if got, err := store.ReadManifest(ds); err != nil || got.ID != makeDataset(t, whole, true, pages, tokens).ID {
		t.Errorf("another id: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(ds, ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// An append after a restore takes no name that a file of another generation has.
func TestAppendAfterRestore(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, false, pages)
	schema := store.Schema{Fields: []store.Field{pages}}
	opts := flat.Options{ShardBytes: 4 * 4096, Append: true}
	for version := 1; version <= 2; version++ {
		if _, err := appendTo(ds, schema, opts, version); err != nil {
			t.Fatal(err)
		}
		if version == 1 {
			if _, err := At(ds).Restore("1", Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, ids := 1, map[string]bool{}; n <= 4; n++ {
		m, err := store.ReadManifest(fmt.Sprintf("%s@%d", ds, n))
		require.NoError(t, err)
		if n != 3 && ids[m.ID] {
			t.Errorf("generation %d has the id of another one", n)
		}
		ids[m.ID] = true
		if _, corrupt := datasettest.Verify(t, fmt.Sprintf("%s@%d", ds, n)); len(corrupt) > 0 {
			t.Errorf("generation %d: %v", n, corrupt[0])
		}
	}
}

func TestPruneKeepsWhatIsNeeded(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, false, pages)
	for version := range 3 {
		var err error
		if version == 0 {
			_, err = At(ds).AddColumn(emb, valuesOf(emb, 0), Options{})
		} else {
			_, err = At(ds).SetColumn(emb, valuesOf(emb, version), Options{})
		}
		require.NoError(t, err)
	}
	require.NoError(t, At(ds).Tag("first", 2))
	if err := At(ds).Tag("first", 3); !errors.Is(err, store.ErrExist) {
		t.Errorf("a tag was moved: %v", err)
	}
	dry, err := At(ds).Prune(PruneOptions{DryRun: true})
	if err != nil || fmt.Sprint(dry.Generations) != "[1 3]" || dry.Files != 12 {
		t.Fatalf("%+v, %v", dry, err)
	}
	if done, err := At(ds).Prune(PruneOptions{}); err != nil || fmt.Sprint(done) != fmt.Sprint(dry) {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := store.Open(ds, store.OpenOptions{Generation: 3}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("generation 3: %v", err)
	}
	for _, path := range []string{ds, ds + "@4", ds + "@first", ds + "@2"} {
		if _, corrupt := datasettest.Verify(t, path); len(corrupt) > 0 {
			t.Errorf("%s: %v", path, corrupt[0])
		}
	}
	require.NoError(t, At(ds).Untag("first"))
	if done, err := At(ds).Prune(PruneOptions{Last: 1}); err != nil || fmt.Sprint(done.Generations) != "[2]" {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestLogRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, path, false, pages, labels)
	require.NoError(t, At(path).Tag("best", 1))
	tag := filepath.Join(path, "generations", "tags", "best.json")
	require.NoError(t, errors.Join(os.Remove(tag), os.WriteFile(tag, []byte(`{"generation": -1}`), 0o644)))
	want := "is not the name of a generation (it is -1)"
	if _, err := At(path).Log(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// The shards of a column of Zarr are the files that it was staged in.
func TestZarrShardsAreNotCopied(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds.zarr")
	makeIn(t, containers[1], ds, pages) // in shards of 8 records
	staged := make(map[any]bool)
	values := func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := range records {
				files, _ := filepath.Glob(filepath.Join(ds, ".wide.column.building", "*.npy"))
				for _, path := range files {
					if info, err := os.Stat(path); err == nil {
						staged[inode(info)] = true
					}
				}
				if !yield(large(0, i), nil) {
					return
				}
			}
		}
	}
	if _, err := At(ds).AddColumn(wide, values, Options{}); err != nil {
		t.Fatal(err)
	}
	shards, err := filepath.Glob(filepath.Join(ds, "wide", "c.*"))
	if err != nil || len(shards) < 2 {
		t.Fatalf("shards %q: %v", shards, err)
	}
	for _, path := range shards {
		if info, err := os.Stat(path); err != nil || !staged[inode(info)] {
			t.Errorf("%s is another file than those of the stage: %v", path, err)
		}
	}
}

// wide is a field of which few values are gathered before they are written.
var wide = store.NewField("wide", tensor.Uint8, 1<<19)

func large(version, i int) []byte { return bytes.Repeat([]byte{byte(version), byte(i)}, 1<<18) }
