package prepare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
)

// busyBucket is a bucket whose writes can fail, and are remembered.
type busyBucket struct {
	*membucket.Memory
	mu     sync.Mutex
	writes []string // keys, in the order in which they were committed
	copies int
	fail   func(key string, nth int) error // of the nth attempt to write a key; called by several goroutines
	tries  map[string]int
}

func (b *busyBucket) Close() error { return nil }

func (b *busyBucket) NewWriter(ctx context.Context, key string, o remote.WriteOptions) (remote.Writer, error) {
	b.mu.Lock()
	if b.tries == nil {
		b.tries = make(map[string]int)
	}
	b.tries[key]++
	nth := b.tries[key]
	b.mu.Unlock()
	w, err := b.Memory.NewWriter(ctx, key, o)
	if b.fail != nil && err == nil {
		err = b.fail(key, nth)
	}
	return &busyWriter{w, b, key}, err
}

func (b *busyBucket) Copy(ctx context.Context, from, to string) error {
	b.mu.Lock()
	b.copies++
	b.mu.Unlock()
	return b.Memory.Copy(ctx, from, to)
}

type busyWriter struct {
	remote.Writer
	b   *busyBucket
	key string
}

func (w *busyWriter) Commit() error {
	err := w.Writer.Commit()
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if err == nil {
		w.b.writes = append(w.b.writes, w.key)
	}
	return err
}

func useBusyBucket(t *testing.T) *busyBucket {
	t.Helper()
	b := &busyBucket{Memory: &membucket.Memory{Name: "s3://lab", Pages: 7}}
	useURLs(t, b)
	return b
}

// sendingNote remembers what was sent when all was made.
type sendingNote struct {
	rawtest.Silent
	b     *busyBucket
	early int // shards
	notes string
}

func (s *sendingNote) Begin(what string, _ int64, _ string) {
	if what == "sending" {
		s.early = s.b.shards()
	}
}

func (s *sendingNote) Note(text string) { s.notes += text }

// shards returns how many shards of images were sent.
func (b *busyBucket) shards() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.writes {
		if strings.Contains(key, "images-") && !strings.HasSuffix(key, ".crc.npy") {
			n++
		}
	}
	return n
}

// arrays writes an .npy file of n records of 4 KiB, so that a shard can be as small.
func arrays(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "\x93NUMPY\x01\x00\x76\x00%-117s\n", fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 4096), }", n))
	random := rand.NewChaCha8([32]byte{byte(n)})
	if _, err := io.CopyN(&b, random, int64(n)*4096); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rawtest.Put(t, dir, "images.npy", b.Bytes())
	return filepath.Join(dir, "images.npy")
}

// streamed is a Config whose shards are small and sent early, and the dataset as it is made
// on a disk.
func streamed(t *testing.T, n int, change func(*Config)) (remote, local Config) {
	t.Helper()
	local = config(t, arrays(t, n))
	local.Images.Resize, local.Images.Crop = nil, nil
	local.ShardBytes, local.Checkpoint = 8<<10, 1
	if change != nil {
		change(&local)
	}
	mustRun(t, local)
	remote = local
	remote.Dest, remote.Spool = urlOf("ds"), t.TempDir()
	return remote, local
}

// Shards go to the bucket while the dataset is made: of most of it, nothing is left to be sent
// at the end. Neither splits nor an order change the bytes.
func TestShardsAreSentWhileTheyAreMade(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"plain":   func(*Config) {},
		"splits":  func(c *Config) { c.Split, _ = samples.ParseSplit("train=0.6,val=0.3,test=0.1") },
		"shuffle": func(c *Config) { c.Shuffle = Seed{true, 5} },
	} {
		t.Run(name, func(t *testing.T) {
			b := useBusyBucket(t)
			c, local := streamed(t, 60, change)
			p := &sendingNote{b: b}
			if _, err := Run(t.Context(), c, p); err != nil {
				t.Fatal(err)
			}
			checkSame(t, filepath.Join(fetchBucket(t, b, "ds"), "ds"), local.Dest)
			if n := b.shards(); p.early < n-3 || n < 30 {
				t.Errorf("%d of %d shards were sent before all was made", p.early, n)
			}
			if name == "splits" && b.copies == 0 {
				t.Error("no shard of a later split was copied inside of the store")
			}
			if last := b.writes[len(b.writes)-1]; last != "ds/"+layout.ManifestName {
				t.Errorf("the last object is %s", last)
			}
			for i, key := range b.writes {
				if slices.Contains(b.writes[:i], key) {
					t.Errorf("%s was sent twice", key)
				}
			}
			if left := foldertest.Files(t, c.Spool); len(left) > 0 {
				t.Errorf("left in the spool: %v", left)
			}
		})
	}
}

// A store that fails now and then costs attempts, nothing else.
func TestSendingIsRepeated(t *testing.T) {
	b := useBusyBucket(t)
	c, local := streamed(t, 60, nil)
	b.fail = func(key string, nth int) error {
		if nth == 1 {
			return remote.NewError("write", key, nil, errors.New("503 Slow Down"))
		}
		return nil
	}
	mustRun(t, c)
	checkSame(t, filepath.Join(fetchBucket(t, b, "ds"), "ds"), local.Dest)
}

// refuse makes a run fail when the first ten shards are in the bucket, and it knows of that: all
// that send must be at others.
func (b *busyBucket) refuse(t *testing.T, c Config) string {
	t.Helper()
	var refused sync.WaitGroup
	refused.Add(upload.Uploads)
	b.fail = func(key string, _ int) error {
		if strings.Contains(key, "-0000") {
			return nil
		}
		refused.Done()
		refused.Wait()
		return remote.NewError("write", key, remote.ErrPermission, nil)
	}
	_, err := Run(t.Context(), c, &rawtest.Silent{})
	if err == nil || !errors.Is(err, remote.ErrPermission) {
		t.Fatalf("error %v", err)
	}
	b.fail = nil
	return err.Error()
}

// A run that cannot send says what lies in the bucket, where no dataset opens. With --resume
// nothing of that is sent again; without it, it is replaced.
func TestSendingGoesOn(t *testing.T) {
	for _, resume := range []bool{true, false} {
		b := useBusyBucket(t)
		c, local := streamed(t, 60, nil)
		if text := b.refuse(t, c); !strings.Contains(text, "without a manifest: --resume keeps them and continues") || strings.Contains(text, "hush") {
			t.Errorf("it does not name the existing objects: %s", text)
		}
		there := keysOf(t, b, "ds/")
		if len(there) == 0 || slices.Contains(there, "ds/"+layout.ManifestName) {
			t.Errorf("objects %v", there)
		}
		fillBucket(t, b, stray(t), "ds")
		before := len(b.writes)
		c.Resume = resume
		p := &sendingNote{b: b}
		if _, err := Run(t.Context(), c, p); err != nil {
			t.Fatal(err)
		}
		again := 0
		for _, key := range b.writes[before:] {
			if slices.Contains(there, key) {
				again++
			}
		}
		if resume && again > 0 {
			t.Errorf("%d of %d files were sent again", again, len(there))
		}
		if !resume && again == 0 {
			t.Error("what a run before has sent was not replaced")
		}
		if !strings.Contains(p.notes, "of a run before this one") {
			t.Errorf("nothing is said of what was removed: %q", p.notes)
		}
		checkSame(t, filepath.Join(fetchBucket(t, b, "ds"), "ds"), local.Dest)
	}
}

// stray returns a folder with a shard that no dataset has.
func stray(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rawtest.Put(t, dir, "images-00999.npy", []byte("of a run before"))
	return dir
}

// Uploaded files are not trusted: an object that is gone, cut or other bytes now is an error,
// another version of the same bytes is none.
func TestSentIsLookedAt(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b *busyBucket, key string, data []byte)
		says   string
	}{
		"gone":       {func(b *busyBucket, key string, _ []byte) { _ = b.Delete(context.Background(), key) }, "is not there any more; start over, without --resume"},
		"cut":        {func(b *busyBucket, key string, data []byte) { b.Put(key, data[:len(data)-1]) }, "is not there any more; start over, without --resume"},
		"other":      {func(b *busyBucket, key string, data []byte) { data[5000] ^= 1; b.Put(key, data) }, "has been replaced by other bytes; start over"},
		"made again": {func(b *busyBucket, key string, data []byte) { b.Put(key, data) }, ""},
	} {
		b := useBusyBucket(t)
		k, local := streamed(t, 60, nil)
		b.refuse(t, k)
		key := "ds/images-00000.npy"
		data, _, err := requests.NewClient(b, remote.Policy{}).ReadAll(t.Context(), key, 1<<20)
		require.NoError(t, err)
		c.change(b, key, slices.Clone(data))
		k.Resume = true
		_, err = Run(t.Context(), k, &rawtest.Silent{})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v", what, err)
			continue
		}
		k.Resume = false
		if err != nil {
			mustRun(t, k)
		}
		checkSame(t, filepath.Join(fetchBucket(t, b, "ds"), "ds"), local.Dest)
	}
}

// A shard that disappears after it was sent, before the manifest is, keeps it from being sent.
func TestNoManifestOfWhatIsNotThere(t *testing.T) {
	b := useBusyBucket(t)
	c, _ := streamed(t, 60, nil)
	var once sync.Once
	b.fail = func(key string, _ int) (err error) {
		if strings.HasSuffix(key, ".crc.npy") { // small ones, sent at the end
			once.Do(func() { err = b.Delete(context.Background(), "ds/images-00000.npy") })
		}
		return err
	}
	if _, err := Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "ds/images-00000.npy, which was sent, is not there any more") {
		t.Errorf("error %v", err)
	}
	if slices.Contains(keysOf(t, b, "ds/"), "ds/"+layout.ManifestName) {
		t.Error("a manifest was published")
	}
}

// A dataset that is replaced stays as it is until all of the new one is made.
func TestReplacedAtTheEnd(t *testing.T) {
	b := useBusyBucket(t)
	c, local := streamed(t, 60, nil)
	mustRun(t, c)
	c.Overwrite = true
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop := &rawtest.Silent{F: func(done int64) {
		if done == 50 {
			cancel(errors.New("stopped"))
		}
	}}
	if _, err := Run(ctx, c, stop); err == nil {
		t.Fatal("it was not stopped")
	}
	checkSame(t, filepath.Join(fetchBucket(t, b, "ds"), "ds"), local.Dest)
}

// Ranks and the merge send while they make, too.
func TestPartsAreSentWhileTheyAreMade(t *testing.T) {
	b := useBusyBucket(t)
	c, local := streamed(t, 60, nil)
	for rank := range 2 {
		p := c.rank(rank, 2)
		p.Spool = t.TempDir()
		before, note := b.shards(), &sendingNote{b: b}
		if _, err := Run(t.Context(), p, note); err != nil {
			t.Fatal(err)
		}
		if n := b.shards(); note.early < n-1 || n-before < 10 {
			t.Errorf("%d of %d shards were sent before all was made", note.early-before, n-before)
		}
	}
	before, note := b.shards(), &sendingNote{b: b}
	m := MergeConfig{Dest: c.Dest, Spool: t.TempDir(), Checkpoint: 1}
	if _, err := Merge(t.Context(), m, note); err != nil {
		t.Fatal(err)
	}
	if n := b.shards(); note.early < n-1 || n-before < 30 {
		t.Errorf("%d of %d shards were sent before all was merged", note.early-before, n-before)
	}
	checkSame(t, filepath.Join(fetchBucket(t, b, "ds/"), "ds"), local.Dest)
}

// Processes that are killed while they send, and run again, write the same dataset as one that was not
// killed, and leave nothing next to it.
func TestKilledWhileSending(t *testing.T) {
	if !cloud.Built {
		t.Skip("built with -tags nocloud: there are no buckets of files, which outlive a process")
	}
	for name, last := range map[string]string{"ds": layout.ManifestName, "ds.zarr": layout.ZarrManifest} {
		t.Run(name, func(t *testing.T) { testKilledWhileSending(t, name, last) })
	}
}

func testKilledWhileSending(t *testing.T, name, last string) {
	w := child{Source: arrays(t, 100), Workers: 2, Split: "train=0.8,val=0.2", Checkpoint: time.Millisecond, Raw: true}
	w.Dest = filepath.Join(t.TempDir(), name)
	w.run(t, 0)
	want := foldertest.Files(t, w.Dest)
	w.Bucket, w.Dest, w.Spool = t.TempDir(), urlOf("out/"+name), t.TempDir()
	_, whole := w.run(t, 0)
	hits := kills(0)
	for i := 0; i < *killCount || hits == 0; i++ {
		w.Bucket, w.Dest, w.Spool = t.TempDir(), urlOf("out/"+name), t.TempDir()
		manifest := filepath.Join(w.Bucket, "out", name, filepath.FromSlash(last))
		for range 3 {
			killed, _ := w.run(t, 1+rand.IntN(whole))
			_, err := os.Stat(manifest)
			hits.note(t, killed && err != nil && len(foldertest.Files(t, w.Bucket)) > 0, i)
			if err == nil {
				break
			}
		}
		if _, err := os.Stat(manifest); err != nil {
			w.run(t, 0)
		}
		got := foldertest.Files(t, filepath.Join(w.Bucket, "out", name))
		maps.DeleteFunc(got, func(name, _ string) bool { // of writes that were killed; a store shows none of them
			return strings.HasSuffix(name, ".tmp")
		})
		if !maps.Equal(got, want) {
			t.Errorf("other bytes or files than without a kill: %v, and not %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	t.Logf("%d were killed while they sent", hits)
}

// useFolder makes every URL one of a bucket of files, which outlives the process.
func useFolder(dir string) {
	upload.OpenURL = func(ctx context.Context, text string) (remote.Bucket, *remote.URL, error) {
		u, err := remote.ParseURL(text)
		if err != nil {
			return nil, nil, err
		}
		b, _, err := cloud.Open(ctx, "file://"+dir+"/x")
		return b, u, err
	}
}
