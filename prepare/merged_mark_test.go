package prepare

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// mortalBucket is a bucket that a process loses when it has removed a number of objects, or before
// it writes one.
type mortalBucket struct {
	*membucket.Memory
	deletes int    // that are left; -1 is any number
	last    string // what the name of an object ends with that is not written
}

var errKilled = remote.NewError("use", "s3://lab", remote.ErrPermission, errors.New("killed"))

func (b *mortalBucket) Delete(ctx context.Context, key string) error {
	if b.deletes == 0 {
		return errKilled
	}
	b.deletes--
	return b.Memory.Delete(ctx, key)
}

func (b *mortalBucket) NewWriter(ctx context.Context, key string, o remote.WriteOptions) (remote.Writer, error) {
	if b.last != "" && strings.HasSuffix(key, b.last) {
		return nil, errKilled
	}
	return b.Memory.NewWriter(ctx, key, o)
}

// partsInBucket builds some of two parts in a bucket. It returns the bucket, the merge of the parts, and the Config
// that builds the dataset in one run.
func partsInBucket(t *testing.T, ranks ...int) (b *mortalBucket, m MergeConfig, c Config) {
	t.Helper()
	b = &mortalBucket{Memory: &membucket.Memory{Name: "s3://lab", Pages: 5}, deletes: -1}
	useURLs(t, b)
	c = config(t, rawtest.Folder(t, 6))
	mustRun(t, c)
	m = MergeConfig{Dest: urlOf("out/ds"), RemoveParts: true}
	for _, r := range ranks {
		p := c.rank(r, 2)
		p.Dest, p.Spool = m.Dest, t.TempDir()
		mustRun(t, p)
	}
	return b, m, c
}

// copied returns another bucket with the same objects.
func (b *mortalBucket) copied(t *testing.T) *mortalBucket {
	t.Helper()
	out := &mortalBucket{Memory: &membucket.Memory{Name: b.Name, Pages: b.Pages}, deletes: -1}
	for _, key := range keysOf(t, b, "") {
		data, _, err := requests.NewClient(b, remote.Policy{}).ReadAll(t.Context(), key, 1<<30)
		require.NoError(t, err)
		if strings.Contains(string(data), "hush") {
			t.Errorf("%s has a secret", key)
		}
		out.Put(key, data)
	}
	return out
}

// merge merges from a machine that has nothing of a merge before.
func (b *mortalBucket) merge(t *testing.T, m MergeConfig) (*Summary, error) {
	t.Helper()
	useURLs(t, b)
	m.Spool = t.TempDir()
	return Merge(t.Context(), m, &rawtest.Silent{})
}

// A merge that was killed anywhere while it removed the parts is finished by the next one, whatever
// that is asked for.
func TestMergeInABucketFinishesRemoval(t *testing.T) {
	first, m, c := partsInBucket(t, 0, 1)
	parts := len(keysOf(t, first, "out/ds.parts"))
	again := map[string]func(*MergeConfig){
		"plain": func(m *MergeConfig) { m.RemoveParts = false }, "same": func(*MergeConfig) {},
		"overwrite": func(m *MergeConfig) { m.Overwrite = true }, "resume": func(m *MergeConfig) { m.Resume = true },
	}
	names := slices.Sorted(maps.Keys(again))
	for kill := range parts + 1 { // the mark goes last
		b := first.copied(t)
		b.deletes = kill
		if s, err := b.merge(t, m); err == nil || !strings.Contains(err.Error(), "the dataset is made, but its parts cannot be removed") {
			t.Fatalf("killed after %d of %d objects: %+v, %v", kill, parts, s, err)
		}
		b = b.copied(t)
		n := m
		name := names[kill%len(names)]
		again[name](&n)
		s, err := b.merge(t, n)
		if err != nil {
			t.Fatalf("killed after %d of %d objects, then %s: %v", kill, parts, name, err)
		}
		if s.Records != 6 || s.ID != rawtest.Manifest(t, c.Dest).ID || s.Dest != "s3://lab/out/ds" || s.Source.Path != "s3://lab/out/ds.parts" || !slices.Equal(s.Hints, []string{completeHint}) {
			t.Errorf("%+v", s)
		}
		if left := keysOf(t, b, "out/ds.parts"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		checkSame(t, filepath.Join(fetchBucket(t, b, "out/"), "out/ds"), c.Dest)
	}
}

// The mark of merged parts does not remove other parts, nor any without the dataset.
func TestMergeInABucketKeepsOtherParts(t *testing.T) {
	first, m, c := partsInBucket(t, 0, 1)
	b := first.copied(t)
	b.last = layout.ManifestName
	if _, err := b.merge(t, m); err == nil {
		t.Fatal("a dataset without a manifest")
	}
	b = b.copied(t)
	m.RemoveParts = false
	if _, err := b.merge(t, m); err != nil {
		t.Fatal(err)
	}
	checkSame(t, filepath.Join(fetchBucket(t, b, "out/"), "out/ds"), c.Dest)
	whole := keysOf(t, first, "out/ds.parts")
	if left := keysOf(t, b, "out/ds.parts"); !slices.Equal(left, whole) {
		t.Errorf("left: %v, want %v", left, whole)
	}

	m.RemoveParts = true
	b = first.copied(t)
	b.deletes = 0
	if _, err := b.merge(t, m); err == nil {
		t.Fatal("parts were removed")
	}
	b = b.copied(t)
	useURLs(t, b)
	other := config(t, rawtest.Folder(t, 8))
	for r := range 2 {
		p := other.rank(r, 2)
		p.Dest, p.Spool, p.Overwrite = m.Dest, t.TempDir(), true
		mustRun(t, p)
	}
	whole = keysOf(t, b, "out/ds.parts/")
	if _, err := b.merge(t, m); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("other parts next to a dataset: %v", err)
	}
	if left := keysOf(t, b, "out/ds.parts"); !slices.Equal(left, whole) {
		t.Errorf("left: %v, want %v", left, whole)
	}
}

// A run, or a merge, that was killed after publishing is done: with --resume it reports so, on this
// machine or on another, and without --resume it reports that the dataset exists.
func TestPublishedIsDone(t *testing.T) {
	b, m, c := partsInBucket(t, 0, 1)
	m.RemoveParts = false
	if _, err := b.merge(t, m); err != nil {
		t.Fatal(err)
	}
	before := keysOf(t, b, "")
	if s, err := b.merge(t, m); !errors.Is(err, store.ErrExist) {
		t.Errorf("merged again: %+v, %v", s, err)
	}
	m.Resume = true
	s, err := b.merge(t, m)
	if err != nil || s.Records != 6 || s.Dest != "s3://lab/out/ds" || !slices.Equal(s.Hints, []string{completeHint}) || s.Bytes == 0 {
		t.Errorf("resumed merge: %+v, %v", s, err)
	}
	if after := keysOf(t, b, ""); !slices.Equal(after, before) {
		t.Errorf("objects %v, before %v", after, before)
	}
	c.Dest, c.Resume, c.Spool = m.Dest, true, t.TempDir()
	if s := mustRun(t, c); s.Records != 6 || s.Dest != "s3://lab/out/ds" || !slices.Equal(s.Hints, []string{completeHint}) {
		t.Errorf("resumed run: %+v", s)
	}
	c.Images.Crop = nil
	if s, err := Run(t.Context(), c, &rawtest.Silent{}); !errors.Is(err, store.ErrExist) {
		t.Errorf("another recipe: %+v, %v", s, err)
	}
	m.RemoveParts = true
	if _, err := b.merge(t, m); err != nil {
		t.Error(err)
	}
	if left := keysOf(t, b, "out/ds.parts"); len(left) > 0 {
		t.Errorf("parts are left: %v", left)
	}
}

// Some parts are in a bucket, some here; so may be the dataset.
func TestMergeFromHereAndThereFinishesRemoval(t *testing.T) {
	for _, dest := range []string{"bucket", "here"} {
		t.Run(dest, func(t *testing.T) {
			b, m, c := partsInBucket(t, 0)
			p := c.rank(1, 2)
			p.Dest = filepath.Join(t.TempDir(), "node")
			mustRun(t, p)
			here := part.Folder(p.Dest)
			m.Parts = []string{here, urlOf("out/ds.parts")}
			if dest == "here" {
				m.Dest = filepath.Join(t.TempDir(), "ds")
			}
			b.deletes = 2
			if _, err := b.merge(t, m); err == nil {
				t.Fatal("all parts were removed")
			}
			b = b.copied(t)
			s, err := b.merge(t, m)
			require.NoError(t, err)
			if s.ID != rawtest.Manifest(t, c.Dest).ID || !part.Gone(here) || len(keysOf(t, b, "out/ds.parts")) > 0 {
				t.Errorf("%+v; left: %v", s, keysOf(t, b, "out/ds.parts"))
			}
			if dest == "bucket" {
				m.Dest = filepath.Join(fetchBucket(t, b, "out/"), "out/ds")
			}
			checkSame(t, m.Dest, c.Dest)
		})
	}
}
