package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/store/write"
)

// killCount is how often TestKill kills each kind of build: few in every run of the tests, and
// with -kills 50 as many as a release should survive.
var killCount = flag.Int("kills", 1, "how often TestKill kills each kind of build, at least")

// childKey is the environment variable with the work of a child process, as JSON.
const childKey = "PENSTOCK_PREPROCESS_CHILD"

// child is a job that the tests' own binary does as a child process.
type child struct {
	Source, Dest string
	Workers      int
	Split        string
	Dedup        bool
	Checkpoint   time.Duration
	World        part.Rank
	Compress     Compress
	Bucket       string // folder that URLs lie in
	Spool        string
	Append       bool
	Raw          bool // arrays, in small shards
	Merge        bool // parts, and remove them
	Keep         bool // with Merge: their shards, and do not remove them
	Shuffle      Seed
	View         bool
	Machine      string // another one for another name
	Late         uint64 // seed of what is seen late of the folder of parts; 0: nothing
}

// do does the job.
func (w child) do(p Progress) error {
	part.Machine = w.Machine
	if w.Bucket != "" {
		useFolder(w.Bucket)
	}
	if w.Late != 0 {
		defer lateParts(w.Dest, w.Late)()
	}
	if w.Merge {
		c := MergeConfig{Dest: w.Dest, Spool: w.Spool, Workers: w.Workers, Resume: true, RemoveParts: !w.Keep, KeepShards: w.Keep, Checkpoint: w.Checkpoint}
		_, err := Merge(context.Background(), c, p)
		return err
	}
	_, err := Run(context.Background(), w.config(), p)
	return err
}

// steps is the progress of a child: a byte on standard output for each step, for run to count.
func steps() Progress {
	return &rawtest.Silent{F: func(int64) { _, _ = os.Stdout.Write([]byte{'.'}) }} // the parent may be gone
}

func (w child) config() Config {
	c := DefaultConfig()
	c.Source, c.Dest, c.Workers, c.Dedup, c.Shuffle, c.View = w.Source, w.Dest, w.Workers, w.Dedup, w.Shuffle, w.View
	c.Images.Resize, c.Images.Crop, c.Skip, c.Resume, c.Append = []int{24}, []int{16}, true, true, w.Append
	c.Images.Normalize, _ = field.ParseNormalize("none")
	c.Split, _ = samples.ParseSplit(w.Split)
	c.Checkpoint, c.Rank, c.Compress, c.Spool = w.Checkpoint, w.World, w.Compress, w.Spool
	if w.Raw {
		c.Images.Resize, c.Images.Crop, c.ShardBytes = nil, nil, 8<<10
	}
	if c.DatasetFormat() == part.Flat {
		c.ShardBytes = 64 << 10
	}
	return c
}

func TestMain(m *testing.M) {
	is, err := asChild()
	if !is {
		os.Exit(crash.Main(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the child, and kills it at a step of its progress that is not 0. A moment by the
// clock would depend on the machine: it may come before a build begins or after it ends.
func (w child) run(t *testing.T, at int) (killed bool, steps int) {
	t.Helper()
	killed, steps, err := w.try(at)
	require.NoError(t, err)
	return killed, steps
}

// env is the environment of the process.
func (w child) env() []string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return append(os.Environ(), childKey+"="+string(text))
}

// try is run, and returns what the child says of an error.
func (w child) try(at int) (killed bool, steps int, err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = w.env()
	var out strings.Builder
	cmd.Stderr = &out
	progress, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return false, 0, err
	}
	for buf := make([]byte, 64); err == nil; {
		var n int
		n, err = progress.Read(buf)
		if steps += n; at > 0 && steps >= at {
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	err = cmd.Wait()
	if err != nil && at > 0 && strings.Contains(err.Error(), "killed") {
		return true, steps, nil
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &out)
	}
	return false, steps, err
}

// manyPictures makes a source whose build takes long enough to be killed in the middle of.
func manyPictures(t *testing.T, n int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "photos")
	for i := range n {
		name := fmt.Sprintf("%s/%04d.png", []string{"cat", "dog", "eel"}[i*3/n], i)
		data := rawtest.Picture(t, name, 26, 26, i%(n-n/8)) // some come twice
		if i%50 == 17 {
			data = data[:60]
		}
		rawtest.Put(t, root, name, data)
	}
	return root
}

// A build that is killed at any moment and resumed ends with the bytes of one that was not,
// in all formats and for any number of workers.
func TestKill(t *testing.T) {
	source := manyPictures(t, 600)
	for _, b := range []struct {
		name, split string
		compress    Compress
	}{{name: "ds", split: "train=0.8,val=0.2"}, {name: "ds.h5", split: "train=0.8,val=0.2"}, {name: "ds.h5"}, {name: "ds.h5", compress: Compress{Method: Gzip}}, {name: "ds.zarr", split: "train=0.8,val=0.2", compress: Compress{Method: Zstd}}} {
		for _, workers := range []int{1, 2} {
			w := child{Source: source, Workers: workers, Split: b.split, Compress: b.compress, Dedup: b.split != "", Checkpoint: 2 * time.Millisecond}
			t.Run(fmt.Sprintf("%s %q %q %d", b.name, b.split, b.compress.Method, workers), func(t *testing.T) { testKill(t, w, b.name) })
		}
	}
}

func testKill(t *testing.T, w child, name string) {
	w.Dest = filepath.Join(t.TempDir(), name)
	_, whole := w.run(t, 0)
	want, wantSkipped := foldertest.Files(t, w.Dest), foldertest.Files(t, w.Dest+".skipped.jsonl")
	random := rand.New(rand.NewPCG(uint64(w.Workers), uint64(len(name))))
	hits := kills(0)
	for i := 0; i < *killCount || hits == 0; i++ {
		w.Dest = filepath.Join(t.TempDir(), name)
		after := 1 + random.IntN(whole)
		killed, _ := w.run(t, after)
		hits.note(t, killed && write.Unfinished(w.Dest), i)
		if _, err := os.Stat(w.Dest); err == nil && !write.Unfinished(w.Dest) {
			continue // it was done
		}
		if random.IntN(3) == 0 {
			w.run(t, 1+random.IntN(whole))
		}
		if _, err := os.Stat(w.Dest); errors.Is(err, os.ErrNotExist) || write.Unfinished(w.Dest) {
			w.run(t, 0)
		}
		if !maps.Equal(foldertest.Files(t, w.Dest), want) {
			t.Errorf("kill %d, at step %d of %d: the dataset has other bytes than without", i, after, whole)
		}
		if !maps.Equal(foldertest.Files(t, w.Dest+".skipped.jsonl"), wantSkipped) {
			t.Errorf("kill %d, at step %d of %d: another list of skipped samples", i, after, whole)
		}
	}
	t.Logf("%d were killed before their end", hits)
}

// kills counts the children that were killed with something left to continue. A test of them that
// ends with none has shown nothing.
type kills int

// note takes attempt i into account, and fails the test where all of many missed.
func (k *kills) note(t *testing.T, hit bool, i int) {
	t.Helper()
	if hit {
		*k++
	}
	if *k == 0 && i == *killCount+40 {
		t.Fatalf("none of %d kills came before the end of a build and after its begin", i+1)
	}
}

// stopped runs c and stops it after n samples, which must leave a run that can be resumed.
func stopped(t *testing.T, c Config, n int64) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	c.Checkpoint = 1
	_, err := Run(ctx, c, &rawtest.Silent{F: func(done int64) {
		if done == n {
			cancel(errors.New("stopped"))
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "--resume continues after them") {
		t.Fatalf("error %v", err)
	}
	return err.Error()
}

func TestResumeRefusesWhatDiffers(t *testing.T) {
	source := rawtest.Folder(t, 40)
	for what, change := range map[string]func(*Config){
		"another transforms":        func(c *Config) { c.Images.Crop = []int{16, 16}; c.Images.Filter = "nearest" },
		"another options":           func(c *Config) { c.Images.Rules.Orient = true },
		"another number of samples": func(c *Config) { rawtest.Put(t, source, "dog/zzzz.png", rawtest.Picture(t, ".png", 30, 30, 1)) },
		"another splits":            func(c *Config) { c.Split = []samples.Share{{Name: "a", Share: 0.5}, {Name: "b", Share: 0.5}} },
		"another shard size":        func(c *Config) { c.ShardBytes = 1 << 20 },
	} {
		c := config(t, source)
		stopped(t, c, 20)
		if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "continue it with --resume") {
			t.Errorf("a new run discards existing records: %v", err)
		}
		c.Resume = true
		change(&c)
		if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// A finished dataset that another recipe made does not end a run with --resume: the error says
// what differs.
func TestResumeSaysWhatDiffers(t *testing.T) {
	source := rawtest.Folder(t, 8)
	for want, change := range map[string]func(*Config){
		"CenterCrop size: [16,16] there, [12,12] now":                          func(c *Config) { c.Images.Crop = []int{12} },
		"transforms: Resize, CenterCrop, ToLayout there, Resize, ToLayout now": func(c *Config) { c.Images.Crop = nil; c.Images.Resize = []int{16, 16} },
		"--exif-orientation: ignored there, applied now":                       func(c *Config) { c.Images.Rules.Orient = true },
		"--split: none there, train=0.5,val=0.5 now":                           func(c *Config) { c.Split = []samples.Share{{Name: "train", Share: 0.5}, {Name: "val", Share: 0.5}} },
		"--color: rgb there, gray now":                                         func(c *Config) { c.Images.Color = "gray" },
		"source: photos there, other now":                                      func(c *Config) { c.Source = filepath.Join(filepath.Dir(source), "other") },
	} {
		c := config(t, source)
		mustRun(t, c)
		c.Resume = true
		change(&c)
		_, err := Run(context.Background(), c, &rawtest.Silent{})
		if err == nil || !strings.Contains(err.Error(), "exists already, and --resume cannot continue it: "+want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// A split that gets no records is reported, with what to do.
func TestEmptySplit(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.Split = []samples.Share{{Name: "train", Share: 0.999999}, {Name: "val", Share: 0.000001}}
	if s := mustRun(t, c); !slices.Contains(s.Hints, "the split val has no records; --stratify gives it its share to within one record") {
		t.Errorf("notes %q", s.Hints)
	}
}

// Samples that changed their names are found out, though there are as many as before.
func TestResumeComparesNames(t *testing.T) {
	c := config(t, rawtest.Folder(t, 40))
	stopped(t, c, 20)
	require.NoError(t, os.Rename(filepath.Join(c.Source, "cat/c.png"), filepath.Join(c.Source, "cat/cc.png")))
	c.Resume = true
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "the source is another one than before") {
		t.Errorf("error %v", err)
	}
}

// A build that failed at a bad sample can be resumed with another word on bad samples.
func TestResumeAfterFailure(t *testing.T) {
	source := rawtest.Folder(t, 40)
	rawtest.Put(t, source, "dog/ma.jpg", []byte("words"))
	whole := config(t, source)
	whole.Skip = true
	mustRun(t, whole)
	c := config(t, source)
	c.Checkpoint = 1
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "records are kept") {
		t.Fatalf("error %v", err)
	}
	c.Resume, c.Skip = true, true
	mustRun(t, c)
	if !maps.Equal(foldertest.Files(t, c.Dest), foldertest.Files(t, whole.Dest)) {
		t.Error("other bytes than without a failure")
	}
}

// An append that was complete is not made twice by --resume, which compares the content: another source of that name is appended.
func TestResumedAppend(t *testing.T) {
	for _, dest := range []string{"ds", "ds.h5", "ds.zarr"} {
		base, more, other := t.TempDir(), filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "new")
		for i, dir := range []string{base, more, other} {
			for _, class := range []string{"cat", "dog"} {
				rawtest.Put(t, dir, class+"/1.png", rawtest.Picture(t, "1.png", 26, 26, 2*i+len(class)%2))
			}
		}
		c := config(t, base)
		c.Dest, c.Names = filepath.Join(filepath.Dir(c.Dest), dest), NamesOff
		mustRun(t, c)
		c.Source, c.Append, c.Resume = more, true, true
		first := mustRun(t, c)
		again := mustRun(t, c)
		if first.Records != 4 || again.ID != first.ID || again.Records != 4 || !slices.Contains(again.Hints, completeHint) {
			t.Errorf("%s: %d records, then %d with hints %q", dest, first.Records, again.Records, again.Hints)
		}
		c.Source = other
		if s := mustRun(t, c); s.Records != 6 {
			t.Errorf("%s: another source of the name and size: %d records", dest, s.Records)
		}
		c.Resume = false
		if s := mustRun(t, c); s.Records != 8 {
			t.Errorf("%s: without resume: %d records", dest, s.Records)
		}
	}
}
