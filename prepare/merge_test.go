package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// rank returns c for one process of many.
func (c Config) rank(r, size int) Config {
	c.Rank = part.Rank{Index: r, Size: size}
	return c
}

// distribute makes c's dataset in parts, in a random order of ranks, and merges them.
func distribute(t *testing.T, c Config, size int) *Summary {
	t.Helper()
	for _, r := range rand.Perm(size) {
		mustRun(t, c.rank(r, size))
	}
	return mustMerge(t, c.Dest)
}

func mustMerge(t *testing.T, dest string) *Summary {
	t.Helper()
	s, err := Merge(context.Background(), MergeConfig{Dest: dest, Workers: 2}, &rawtest.Silent{})
	require.NoError(t, err)
	return s
}

// mergeError merges, which must fail with nothing written, and returns the error's text.
func mergeError(t *testing.T, m MergeConfig) string {
	t.Helper()
	s, err := Merge(context.Background(), m, &rawtest.Silent{})
	if err == nil {
		t.Fatalf("made %+v, want an error", s)
	}
	if _, err := os.Lstat(m.Dest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s exists after an error", m.Dest)
	}
	return err.Error()
}

// checkSame makes sure that two datasets, and the lists next to them, have the same bytes.
func checkSame(t *testing.T, got, want string) {
	t.Helper()
	a, b := foldertest.Files(t, got), foldertest.Files(t, want)
	if !maps.Equal(a, b) {
		for _, name := range slices.Sorted(maps.Keys(b)) {
			if a[name] != b[name] {
				t.Errorf("%s has %d bytes that differ from the %d of a single run", name, len(a[name]), len(b[name]))
			}
		}
		t.Errorf("files %v, want %v", slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
	}
	one, errOne := os.ReadFile(want + ".skipped.jsonl")
	two, errTwo := os.ReadFile(got + ".skipped.jsonl")
	if string(one) != string(two) || (errOne == nil) != (errTwo == nil) {
		t.Errorf("the list of skipped samples is %s (%v), want %s (%v)", two, errTwo, one, errOne)
	}
}

// raggedRows writes a table whose rows have lists of any length.
func raggedRows(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		tokens := make([]int, i*7%13)
		for k := range tokens {
			tokens[k] = i * k
		}
		text, err := json.Marshal(map[string]any{"x": float64(i) / 7, "tokens": tokens, "label": []string{"no", "yes", "so"}[i%3], "say": strings.Repeat("ü", i%5)})
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\n", text)
		if i%17 == 5 {
			b.WriteString("{ no JSON\n")
		}
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o666))
	return path
}

// merges are the ways to build a dataset from parts.
var merges = []struct {
	name   string
	source string // pictures, rows or dataset
	change func(*Config)
}{
	{"plain", "pictures", func(*Config) {}},
	{"splits", "pictures", func(c *Config) { c.Split, _ = samples.ParseSplit("train=0.7,val=0.3") }},
	{"strata", "pictures", func(c *Config) {
		c.Split, _ = samples.ParseSplit("train=0.7,val=0.3")
		c.Stratify.Wanted, c.Dedup = true, true
	}},
	{"shuffle", "pictures", func(c *Config) { c.Shuffle = Seed{true, 7} }},
	{"dedup", "pictures", func(c *Config) { c.Dedup = true; c.MaxErrors, _ = ParseLimit("50%") }},
	{"statistics", "pictures", func(c *Config) { c.Images.Normalize, _ = field.ParseNormalize("dataset") }},
	{"floats", "pictures", func(c *Config) {
		c.Images.DType = tensor.Float32
		c.Images.Normalize, _ = field.ParseNormalize("imagenet")
	}},
	{"encoded", "pictures", func(c *Config) { c.Images.KeepEncoded, c.Images.Resize, c.Images.Crop = true, nil, nil }},
	{"table", "rows", func(*Config) {}},
	{"table, shuffled", "rows", func(c *Config) { c.Shuffle = Seed{true, 3} }},
	{"table, splits and copies", "rows", func(c *Config) { c.Split, _ = samples.ParseSplit("a=0.5,b=0.5"); c.Dedup = true }},
	{"dataset with splits", "dataset", func(*Config) {}},
	{"dataset, shuffled", "dataset", func(c *Config) { c.Shuffle = Seed{true, 3} }},
}

// TestMergeHasTheBytesOfOneRun makes datasets by 1, 2 and 7 processes.
func TestMergeHasTheBytesOfOneRun(t *testing.T) {
	sources := map[string]string{"pictures": manyPictures(t, 60), "rows": raggedRows(t, 60)}
	base := config(t, sources["rows"])
	base.Images.Resize, base.Images.Crop, base.Skip, base.ShardBytes = nil, nil, true, 4096
	base.Split, _ = samples.ParseSplit("one=0.4,two=0.6")
	sources["dataset"] = mustRun(t, base).Dest
	for _, m := range merges {
		for _, name := range []string{"ds", "ds.h5", "ds.zarr"} {
			t.Run(m.name+" "+name, func(t *testing.T) {
				t.Parallel() // most of the time is the disk's
				c := config(t, sources[m.source])
				c.Skip, c.Workers = true, 2
				if m.source != "pictures" {
					c.Images.Resize, c.Images.Crop = nil, nil
				}
				if name == "ds" {
					c.ShardBytes = 16 << 10
				}
				m.change(&c)
				c.Dest = filepath.Join(t.TempDir(), name)
				want := mustRun(t, c)
				for _, size := range map[string][]int{"ds": {1, 2, 7}, "ds.h5": {7}, "ds.zarr": {2}}[name] {
					p := c
					p.Dest = filepath.Join(t.TempDir(), name)
					got := distribute(t, p, size)
					checkSame(t, p.Dest, c.Dest)
					if got.ID != want.ID || got.Duplicates != want.Duplicates || !maps.Equal(got.SkippedKinds, want.SkippedKinds) {
						t.Errorf("%d processes: %+v, want %+v", size, got, want)
					}
				}
			})
		}
	}
}

// More processes than samples, and parts all of whose samples are bad.
func TestMergeOfEmptyParts(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.Skip = true
	rawtest.Put(t, c.Source, "cat/a.png", []byte("words"))
	rawtest.Put(t, c.Source, "dog/d.jpg", []byte("words"))
	one := c
	one.Dest = filepath.Join(t.TempDir(), "one")
	mustRun(t, one)
	distribute(t, c, 6)
	checkSame(t, c.Dest, one.Dest)
}

// A part that exists is not built again; if it is built again, it is the same.
func TestPartIsMadeOnce(t *testing.T) {
	c := config(t, rawtest.Folder(t, 12)).rank(1, 3)
	mustRun(t, c)
	parts := foldertest.Files(t, part.Folder(c.Dest))
	s := mustRun(t, c)
	if len(s.Hints) == 0 || !strings.Contains(s.Hints[0], "complete already") || s.Part == nil || s.Part.Rank != 1 || s.Records != 4 {
		t.Errorf("made again: %+v", s)
	}
	c.Overwrite = true
	mustRun(t, c)
	if !maps.Equal(foldertest.Files(t, part.Folder(c.Dest)), parts) {
		t.Error("other bytes the second time")
	}
	c.Overwrite, c.Images.Crop = false, []int{20}
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "was made in another way (config.Images.Crop: [16]") && !strings.Contains(err.Error(), "config.Images.Crop: [20]") {
		t.Errorf("another recipe: %v", err)
	}
}

// Runs of one rank at a time: one of them makes the part, the others wait for it.
func TestPartMadeTwiceAtATime(t *testing.T) {
	c := config(t, rawtest.Folder(t, 40))
	one := c
	one.Dest = filepath.Join(t.TempDir(), "one")
	mustRun(t, one)
	c.Workers = 1
	errs := make(chan error)
	for range 3 {
		go func() {
			_, err := Run(context.Background(), c.rank(0, 1), &rawtest.Silent{})
			errs <- err
		}()
	}
	for range 3 {
		require.NoError(t, <-errs)
	}
	mustMerge(t, c.Dest)
	checkSame(t, c.Dest, one.Dest)
}

func TestMergeRefuses(t *testing.T) {
	source := rawtest.Folder(t, 20)
	made := func(t *testing.T) Config {
		c := config(t, source)
		for r := range 3 {
			mustRun(t, c.rank(r, 3))
		}
		return c
	}
	remove := func(c Config, rank int) {
		for _, path := range []string{part.Name(rank, 3), part.Name(rank, 3) + ".json"} {
			require.NoError(t, os.RemoveAll(filepath.Join(part.Folder(c.Dest), path)))
		}
	}
	again := func(c Config, rank int, change func(*Config)) {
		remove(c, rank)
		change(&c)
		mustRun(t, c.rank(rank, 3))
	}
	for name, x := range map[string]struct {
		change func(t *testing.T, c *MergeConfig, p Config)
		says   string
	}{
		"a gap":     {func(_ *testing.T, _ *MergeConfig, p Config) { remove(p, 1) }, "1 of 3 parts are missing: 1; run these ranks"},
		"two gaps":  {func(_ *testing.T, _ *MergeConfig, p Config) { remove(p, 1); remove(p, 2) }, "2 of 3 parts are missing: 1 to 2"},
		"no parts":  {func(_ *testing.T, m *MergeConfig, _ Config) { m.Parts = []string{t.TempDir()} }, "it has no complete parts"},
		"no folder": {func(_ *testing.T, m *MergeConfig, _ Config) { m.Parts = []string{"nowhere"} }, "there is no such folder"},
		"another format": {func(_ *testing.T, m *MergeConfig, _ Config) {
			m.Dest += ".h5"
			m.Parts = []string{strings.TrimSuffix(m.Dest, ".h5") + ".parts"}
		}, "would be HDF5 file, but the parts were made for flat folder"},
		"another crop": {func(_ *testing.T, _ *MergeConfig, p Config) {
			again(p, 1, func(c *Config) { c.Images.Crop = []int{16, 15} })
		}, "differ in config.Images.Crop: [16], and [16,15]"},
		"another decision": {func(_ *testing.T, _ *MergeConfig, p Config) { again(p, 2, func(c *Config) { c.Skip = true }) }, "differ in config.Skip: false, and true"},
		"another size":     {func(_ *testing.T, _ *MergeConfig, p Config) { mustRun(t, p.rank(0, 2)) }, "differ in world_size"},
		"a double": {func(t *testing.T, m *MergeConfig, _ Config) {
			other := made(t)
			remove(other, 0)
			remove(other, 2)
			m.Parts = []string{part.Folder(m.Dest), part.Folder(other.Dest)}
		}, "part 1 exists twice"},
		"another source": {func(t *testing.T, _ *MergeConfig, p Config) {
			other := rawtest.Folder(t, 20)
			require.NoError(t, os.Rename(filepath.Join(other, "cat/c.png"), filepath.Join(other, "cat/cc.png")))
			again(p, 1, func(c *Config) { c.Source = other })
		}, "differ in the samples, or their order, by the digests of their lists"},
		"a part without records": {func(t *testing.T, _ *MergeConfig, p Config) {
			require.NoError(t, os.RemoveAll(filepath.Join(part.Folder(p.Dest), part.Name(1, 3))))
		}, "part-00001-of-00003"},
		"a changed part": {func(t *testing.T, _ *MergeConfig, p Config) {
			path := filepath.Join(part.Folder(p.Dest), part.Name(1, 3)+".json")
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			text[len(text)/2] ^= 1
			require.NoError(t, errors.Join(os.Remove(path), os.WriteFile(path, text, 0o444)))
		}, "part-00001-of-00003.json"},
		"changed records": {func(t *testing.T, _ *MergeConfig, p Config) {
			path := filepath.Join(part.Folder(p.Dest), part.Name(1, 3), "images-00000.npy")
			require.NoError(t, os.Chmod(path, 0o666))
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			defer f.Close()
			if _, err := f.WriteAt([]byte("what is this"), 6000); err != nil {
				t.Fatal(err)
			}
		}, "does not match its checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := made(t)
			m := MergeConfig{Dest: p.Dest}
			x.change(t, &m, p)
			if got := mergeError(t, m); !strings.Contains(got, x.says) {
				t.Errorf("error %s, want %s", got, x.says)
			}
		})
	}
}

// Flags that need to know all samples beforehand are refused, with a remedy.
func TestRankRefuses(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4)).rank(0, 2)
	c.Images.DType, c.Images.Normalize = tensor.Float32, field.Normalize{Name: "dataset", Dataset: true}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "give MEAN/STD as numbers") {
		t.Errorf("statistics of all samples: %v", err)
	}
	c = config(t, rawtest.Folder(t, 4)).rank(0, 2)
	c.Append = true
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--append and --rank") {
		t.Errorf("append: %v", err)
	}
	c = config(t, rawtest.Folder(t, 4))
	mustRun(t, c)
	if _, err := Run(context.Background(), c.rank(0, 2), &rawtest.Silent{}); !errors.Is(err, store.ErrExist) {
		t.Errorf("a destination that exists: %v", err)
	}
}

// A merge that was stopped can be resumed.
func TestMergeResumes(t *testing.T) {
	c := config(t, rawtest.Folder(t, 40))
	one := c
	one.Dest = filepath.Join(t.TempDir(), "one")
	mustRun(t, one)
	for r := range 2 {
		mustRun(t, c.rank(r, 2))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := Merge(ctx, MergeConfig{Dest: c.Dest, Checkpoint: 1}, &rawtest.Silent{F: func(done int64) {
		if done == 25 {
			cancel(errors.New("stopped"))
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "--resume continues after them") {
		t.Fatalf("error %v", err)
	}
	if _, err := Merge(context.Background(), MergeConfig{Dest: c.Dest}, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "continue it with --resume") {
		t.Errorf("again: %v", err)
	}
	for range 2 {
		if _, err := Merge(context.Background(), MergeConfig{Dest: c.Dest, Resume: true, RemoveParts: false}, &rawtest.Silent{}); err != nil {
			t.Fatal(err)
		}
	}
	checkSame(t, c.Dest, one.Dest)
	if _, err := Merge(context.Background(), MergeConfig{Dest: c.Dest, Overwrite: true, RemoveParts: true}, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(part.Folder(c.Dest)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the parts still exist: %v", err)
	}
}

// TestKilledRanks kills processes at any moment and runs them again; the dataset has the
// bytes of an undisturbed run.
func TestKilledRanks(t *testing.T) {
	source := manyPictures(t, 400)
	for _, name := range []string{"ds", "ds.h5", "ds.zarr"} {
		t.Run(name, func(t *testing.T) {
			w := child{Source: source, Workers: 2, Split: "train=0.8,val=0.2", Dedup: true, Checkpoint: 2 * time.Millisecond}
			w.Dest = filepath.Join(t.TempDir(), name)
			_, whole := w.run(t, 0)
			want := w.Dest
			const size = 4
			w.Dest = filepath.Join(t.TempDir(), name)
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			hits := kills(0)
			for r := range size {
				w.World = part.Rank{Index: r, Size: size}
				dest := attemptPath(t, w)
				for i := 0; i < 2 || hits == 0; i++ {
					killed, _ := w.run(t, 1+random.IntN(whole/size))
					hits.note(t, killed && write.Unfinished(dest), i)
					if !killed && hits == 0 { // it is done: once more
						require.NoError(t, os.RemoveAll(part.Folder(w.Dest)))
					}
				}
				w.run(t, 0)
			}
			mustMerge(t, w.Dest)
			checkSame(t, w.Dest, want)
			t.Logf("%d were killed before their end", hits)
		})
	}
}

// attemptPath is where the part of w is built.
func attemptPath(t *testing.T, w child) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(part.Folder(w.Dest), 0o777))
	turn, err := part.Take(t.Context(), part.Folder(w.Dest), "test", func() {})
	require.NoError(t, err)
	defer turn.End()
	return turn.Attempt(w.World.Path(w.Dest))
}
