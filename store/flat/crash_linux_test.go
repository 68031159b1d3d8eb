package flat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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

// crashed is the test of a build that ends at every one of its steps.
type crashed struct {
	kind   string
	name   string            // of the dataset
	before map[string]string // the files of the dataset that exists at first; nil: none
	want   map[string]string
}

// The builds: of a new dataset, of one with splits, of one that takes the place of another or of
// its like, of more records for one.
const (
	crashNew       = "new"
	crashSplits    = "splits"
	crashOverwrite = "overwrite"
	crashRepeat    = "repeat"
	crashAppend    = "append"
)

// crashRecords are in shards of two.
const crashRecords = 7

func crashSchema() store.Schema {
	return store.Schema{Fields: []store.Field{store.NewField("pages", tensor.Uint8, 2048), store.NewRagged("tokens", tensor.Int32)}}
}

// crashOptions are those of a build that can be resumed.
func crashOptions(kind string) Options {
	o := Options{
		ShardBytes: 1, Append: kind == crashAppend, Overwrite: kind == crashOverwrite || kind == crashRepeat,
		Journal: &store.Journal{Resume: true, Inputs: map[string]string{"kind": kind}},
	}
	if kind == crashSplits || kind == crashAppend {
		o.Splits = trainVal
	}
	return o
}

// crashResume continues a build, and returns the number of records that it had; all of them if it
// was done. It calls reached at each checkpoint, and at the end with one more than all records.
func crashResume(dest, kind string, records int, reached func(n int) error) (kept int, err error) {
	opts := crashOptions(kind)
	w, err := create(dest, crashSchema(), opts)
	if errors.Is(err, store.ErrExist) || errors.Is(err, store.ErrCommitted) {
		return records + 1, nil
	}
	if err != nil {
		return 0, err
	}
	defer w.Close()
	kept = int(w.Kept().Records)
	r := store.NewRecord(crashSchema())
	for i := kept; i < records; i++ {
		if i%3 == 0 {
			if err := errors.Join(w.Checkpoint(nil), reached(i)); err != nil {
				return kept, err
			}
		}
		for k := range r.Values[0] {
			r.Values[0][k] = byte(i + k)
		}
		r.Values[1] = append(r.Values[1][:0], byte(i+1), 2, 3, 4)
		if opts.Splits != nil {
			r.Split = trainVal[i%2]
		}
		if err := w.Append(r); err != nil {
			return kept, err
		}
	}
	if _, err := w.Commit(store.Info{Source: &store.SourceInfo{Kind: "test", Name: kind}}); err != nil {
		return kept, err
	}
	return kept, reached(records + 1)
}

func init() { crashBuilder = crashBuild }

// crashBuild is the build that is recorded, in a process of its own.
func crashBuild(dest, kind string) error {
	_, err := crashResume(dest, kind, crashRecords, func(n int) error {
		return os.WriteFile(filepath.Join(filepath.Dir(dest), crash.MarkPrefix+strconv.Itoa(n)), nil, 0o600)
	})
	return err
}

func nowhere(int) error { return nil }

func newCrashed(t *testing.T, kind, name string) *crashed {
	t.Helper()
	c := &crashed{kind: kind, name: name}
	dest := filepath.Join(t.TempDir(), name)
	first, records := kind, 3
	switch kind {
	case crashNew, crashSplits:
		return c
	case crashAppend:
		first = crashSplits
	case crashRepeat:
		records = crashRecords
	}
	if _, err := crashResume(dest, first, records, nowhere); err != nil {
		t.Fatal(err)
	}
	c.before = foldertest.Files(t, dest)
	return c
}

// newDir returns a folder with what there is before the build.
func (c *crashed) newDir(t *testing.T) string {
	t.Helper()
	dir := crash.MemoryDir(t)
	if c.before == nil {
		return dir
	}
	foldertest.Write(t, filepath.Join(dir, c.name), c.before)
	return dir
}

// goOn resumes a build after a crash, which must have kept its last checkpoint.
func (c *crashed) goOn(t *testing.T, s crash.State, dir string) error {
	dest := filepath.Join(dir, c.name)
	done, err := c.whole(t, dest)
	if err != nil {
		return err
	}
	if !done || entryCount(dir) > 1 {
		kept, err := crashResume(dest, c.kind, crashRecords, nowhere)
		if err != nil {
			return err
		}
		if least, _ := strconv.Atoi(s.Mark); kept < least && !done {
			return fmt.Errorf("%d records were kept of %d", kept, least)
		}
	}
	got := foldertest.Files(t, dest)
	for name, want := range c.want {
		if got[name] != want {
			return fmt.Errorf("%s is other than after a build that was not interrupted: %.300q, want %.300q", name, got[name], want)
		}
	}
	if len(got) != len(c.want) {
		return fmt.Errorf("%d files, and a build that was not interrupted has %d", len(got), len(c.want))
	}
	if n := entryCount(dir); n != 1 {
		return fmt.Errorf("%d files are left", n)
	}
	return nil
}

// whole reports whether the dataset is the new one. If a dataset exists, it must be the new one or
// the previous one, with all files.
func (c *crashed) whole(t *testing.T, dest string) (done bool, err error) {
	if _, err := os.Lstat(dest); errors.Is(err, os.ErrNotExist) && c.before == nil {
		return false, nil
	}
	is := foldertest.Files(t, dest)
	want := c.before
	manifest := layout.ManifestName
	if c.name != "ds" {
		manifest = filepath.FromSlash(layout.ZarrManifest)
	}
	if is[manifest] == c.want[manifest] {
		want, done = c.want, true
	}
	for name := range want {
		if is[name] != want[name] {
			return false, fmt.Errorf("%s: not as it was or should be", name)
		}
	}
	if want == nil {
		return false, errors.New("there is a folder that is not a dataset")
	}
	return done, nil
}

func entryCount(dir string) int {
	list, _ := os.ReadDir(dir)
	return len(list)
}

// ending picks states whose journal says that the build had begun to finish.
func (c *crashed) ending(folder string) bool {
	journal, err := os.ReadFile(filepath.Join(folder, "."+c.name+".building", write.JournalName))
	return err == nil && strings.Contains(string(journal), `"renames":`)
}

// A build that ends at any of its steps, by a kill or a power cut, goes on and ends with the
// bytes of one that was not interrupted; also if that happens once more while it goes on.
func TestCrashes(t *testing.T) {
	kinds := []string{crashNew, crashSplits, crashOverwrite, crashRepeat, crashAppend}
	for name, kinds := range map[string][]string{"ds": kinds, "ds.zarr": {crashNew, crashRepeat, crashAppend}} {
		for _, kind := range kinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				c := newCrashed(t, kind, name)
				dir := c.newDir(t)
				trial := crash.Trial{
					Folder: dir, Scratch: crash.MemoryDir(t), Done: func() { c.want = foldertest.Files(t, filepath.Join(dir, name)) },
					Twice: c.ending,
					Over: func(folder string) bool {
						done, _ := c.whole(t, filepath.Join(folder, name))
						return done && kind == crashAppend && entryCount(folder) == 1
					},
					GoOn: func(s crash.State, folder string) error { return c.goOn(t, s, folder) },
					Command: func(folder string) (env, args []string) {
						return []string{builder + "=" + filepath.Join(folder, name), builder + "_CRASH=" + kind}, nil
					},
				}
				trial.Run(t)
			})
		}
	}
}

// An append that was killed when all was published is finished by the next process. If that one is killed too, the
// records are not appended once more.
func TestCrashWhileFinishing(t *testing.T) {
	c := newCrashed(t, crashAppend, "ds")
	dir := c.newDir(t)
	dest := filepath.Join(dir, c.name)
	if _, err := crashResume(dest, c.kind, crashRecords, nowhere); err != nil {
		t.Fatal(err)
	}
	c.want = foldertest.Files(t, dest)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".ds.building.done"), 0o700))
	log, err := crash.Record(dir, append(os.Environ(), builder+"="+dest, builder+"_CRASH="+c.kind), os.Args[0])
	if errors.Is(err, crash.ErrUntraceable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	state := filepath.Join(crash.MemoryDir(t), "state")
	for s := range log.States(0, 1) {
		require.NoError(t, s.Write(state))
		if err := c.goOn(t, s, state); err != nil {
			t.Errorf("%s: %v", s.What, err)
		}
		require.NoError(t, os.RemoveAll(state))
	}
}
