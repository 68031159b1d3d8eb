package prepare

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// A merge that starts first has the bytes of one run in the end.
func TestMergeWaits(t *testing.T) {
	c := config(t, manyPictures(t, 30))
	c.Skip = true
	c.Split, _ = samples.ParseSplit("train=0.8,val=0.2")
	mustRun(t, c)
	p := c
	p.Dest = filepath.Join(t.TempDir(), "ds")
	merged := make(chan error)
	notes := make(chan string, 100)
	go func() {
		_, err := Merge(context.Background(), MergeConfig{Dest: p.Dest, Wait: true}, &noting{notes: notes})
		merged <- err
	}()
	for i, want := range []string{"the first part", "part 0 of 3", "part 1 of 3"} {
		if got := <-notes; !strings.Contains(got, "waiting for "+want) {
			t.Errorf("the merge says %q, want %q", got, want)
		}
		mustRun(t, p.rank([]int{2, 0, 1}[i], 3))
	}
	require.NoError(t, <-merged)
	checkSame(t, p.Dest, c.Dest)
}

// noting sends notes.
type noting struct {
	rawtest.Silent
	notes chan string
}

func (n *noting) Note(text string) { n.notes <- text }

// A merge that waits ends with its context, and with a part of another run.
func TestMergeWaitsNoLonger(t *testing.T) {
	c := config(t, rawtest.Folder(t, 12))
	mustRun(t, c.rank(0, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Merge(ctx, MergeConfig{Dest: c.Dest, Wait: true}, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("error %v", err)
	}
	other := c
	other.Images.Crop, other.Dest = []int{20}, filepath.Join(t.TempDir(), filepath.Base(c.Dest))
	mustRun(t, other.rank(1, 2))
	m := MergeConfig{Dest: c.Dest, Wait: true, Overwrite: true, Parts: []string{part.Folder(c.Dest), part.Folder(other.Dest)}}
	if text := mergeError(t, m); !strings.Contains(text, "they differ in config.Images.Crop") {
		t.Errorf("error %s", text)
	}
}

// checkKept makes sure that a dataset differs from that of a single run in its shards only.
func checkKept(t *testing.T, got, want string, parts int) {
	t.Helper()
	a, b := rawtest.Manifest(t, got), rawtest.Manifest(t, want)
	if len(a.Shards) != parts {
		t.Errorf("%d shards, want those of %d parts", len(a.Shards), parts)
	}
	if a.Shards, b.Shards = nil, nil; !reflect.DeepEqual(a, b) {
		t.Errorf("the manifest is\n%+v, want\n%+v", a, b)
	}
	d, err := store.OpenFlat(got)
	require.NoError(t, err)
	if r, err := verify.Dataset(t.Context(), d, verify.Options{}); err != nil || r.Corruptions > 0 || !r.Identity {
		t.Errorf("verify: %+v, error %v", r, err)
	}
}

// The parts' files become those of the dataset, which has the records, statistics and id of a single run.
func TestMergeKeepsShards(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"pixels":   func(c *Config) {},
		"encoded":  func(c *Config) { c.Images.KeepEncoded, c.Images.Resize, c.Images.Crop = true, nil, nil },
		"shuffled": func(c *Config) { c.Shuffle = Seed{Set: true, Seed: 3} },
		"floats":   func(c *Config) { c.Source, c.Images.Resize, c.Images.Crop = raggedRows(t, 60), nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, manyPictures(t, 60))
			c.Skip = true
			change(&c)
			c.Dest = filepath.Join(t.TempDir(), "one")
			mustRun(t, c)
			p := c
			p.Dest = filepath.Join(t.TempDir(), "ds")
			for r := range 4 {
				mustRun(t, p.rank(r, 4))
			}
			if _, err := Merge(t.Context(), MergeConfig{Dest: p.Dest, KeepShards: true}, &rawtest.Silent{}); err != nil {
				t.Fatal(err)
			}
			for file := range foldertest.Files(t, p.Dest) {
				if base, ok := strings.CutSuffix(file, "-00003.npy"); ok {
					a, errA := os.Stat(filepath.Join(p.Dest, file))
					b, errB := os.Stat(filepath.Join(p.rank(3, 4).Rank.Path(p.Dest), base+"-00000.npy"))
					if errA != nil || errB != nil || !os.SameFile(a, b) {
						t.Errorf("%s is not the file of the part: %v, %v", file, errA, errB)
					}
				}
			}
			if _, err := Merge(t.Context(), MergeConfig{Dest: p.Dest, KeepShards: true, Resume: true, RemoveParts: true}, &rawtest.Silent{}); err != nil {
				t.Fatal(err)
			}
			checkKept(t, p.Dest, c.Dest, 4)
		})
	}
}

func TestMergeKeepsNoShards(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"splits":  func(c *Config) { c.Split, _ = samples.ParseSplit("train=0.8,val=0.2") },
		"--dedup": func(c *Config) { c.Dedup = true },
		"shuffles": func(c *Config) {
			c.Source, c.Images.Resize, c.Images.Crop, c.Shuffle = raggedRows(t, 12), nil, nil, Seed{Set: true}
		},
		"hdf5": func(c *Config) { c.Dest += ".h5" },
	} {
		c := config(t, rawtest.Folder(t, 12))
		c.Skip = true
		change(&c)
		mustRun(t, c.rank(0, 1))
		if text := mergeError(t, MergeConfig{Dest: c.Dest, KeepShards: true}); !strings.Contains(text, want) || !strings.Contains(text, "merge without it") {
			t.Errorf("%s: error %s", want, text)
		}
	}
}

// countingBucket counts the bytes that come here and go from here of files of pixels.
type countingBucket struct {
	*slowBucket
	moved atomic.Int64
}

func (b *countingBucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	body, err := b.slowBucket.ReadRange(ctx, key, off, n, etag)
	if strings.Contains(key, "/images-") && !strings.Contains(key, ".crc.") {
		b.moved.Add(n)
	}
	return body, err
}

func (b *countingBucket) NewWriter(ctx context.Context, key string, o remote.WriteOptions) (remote.Writer, error) {
	if strings.Contains(key, "/images-") && !strings.Contains(key, ".crc.") {
		b.moved.Add(1 << 40)
	}
	return b.slowBucket.NewWriter(ctx, key, o)
}

// In a bucket the store copies the files: their headers are read, and nothing of them is sent.
func TestMergeKeepsShardsInABucket(t *testing.T) {
	source := manyPictures(t, 40)
	b := &countingBucket{slowBucket: useBucket(t, source)}
	useURLs(t, b)
	c := config(t, source)
	c.Skip = true
	mustRun(t, c)
	r := c
	r.Dest = urlOf("out/ds")
	for rank := range 3 {
		p := r.rank(rank, 3)
		p.Spool = t.TempDir()
		mustRun(t, p)
	}
	b.moved.Store(0)
	m := MergeConfig{Dest: r.Dest, Spool: t.TempDir(), KeepShards: true, RemoveParts: true}
	if _, err := Merge(t.Context(), m, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	if n := b.moved.Load(); n != 3*layout.HeaderBytes {
		t.Errorf("%d bytes of pixels were moved, want 3 headers", n)
	}
	checkKept(t, filepath.Join(fetchBucket(t, b, "out/"), "out/ds"), c.Dest, 3)
	if left := keysOf(t, b, "out/ds.parts"); len(left) > 0 {
		t.Errorf("parts are left: %v", left)
	}
	m.RemoveParts = false
	for rank := range 3 {
		p := r.rank(rank, 3)
		p.Spool, p.Overwrite = t.TempDir(), true
		mustRun(t, p)
	}
	m.Overwrite = true
	if _, err := Merge(t.Context(), m, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "choose another name") {
		t.Errorf("replacing: %v", err)
	}
	m.Dest, m.Parts = filepath.Join(t.TempDir(), "ds"), []string{urlOf("out/ds.parts")}
	if _, err := Merge(t.Context(), m, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "must be in one bucket") {
		t.Errorf("from a bucket: %v", err)
	}
}
