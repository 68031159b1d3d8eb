package prepare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// appendConfig makes a dataset in a folder and in a bucket, and returns how more samples are appended to both.
func appendConfig(t *testing.T, change func(c *Config)) (b *slowBucket, here, there Config) {
	t.Helper()
	base := config(t, rawtest.Folder(t, 12))
	change(&base)
	mustRun(t, base)
	b = useBucket(t, base.Dest)
	here = base
	here.Source, here.Append = rawtest.Folder(t, 20), true
	there = here
	there.Dest, there.Spool = urlOf("ds"), t.TempDir()
	return b, here, there
}

// Samples that are appended in a bucket make the dataset that they make in a folder, as the next generation.
func TestAppendInBucket(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"plain":  func(*Config) {},
		"splits": func(c *Config) { c.Split = mustSplit(t, "train=0.5,val=0.5"); c.ShardBytes = 4 * 768 },
		"dedup":  func(c *Config) { c.Dedup, c.Images.KeepEncoded = true, true; c.Images.Resize, c.Images.Crop = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			b, here, there := appendConfig(t, change)
			want, got := mustRun(t, here), mustRun(t, there)
			if got.ID != want.ID || got.Records != want.Records || got.Duplicates != want.Duplicates ||
				got.Dest != "s3://lab/ds" || got.Bytes == 0 {
				t.Errorf("%+v, want %+v", got, want)
			}
			copied := filepath.Join(fetchBucket(t, b, "ds"), "ds")
			d, err := store.OpenFlat(copied)
			if err != nil || d.Manifest.ID != want.ID || d.Manifest.Generation != 2 {
				t.Fatalf("%+v, %v", d, err)
			}
			if old, err := store.OpenFlat(copied + "@1"); err != nil || old.Records != 12 {
				t.Errorf("%+v, %v", old, err)
			}
			if left, err := os.ReadDir(there.Spool); err != nil || len(left) > 0 {
				t.Errorf("%v is left in the spool: %v", left, err)
			}
			there.Resume = true // all was done
			if again := mustRun(t, there); again.ID != want.ID || !strings.Contains(strings.Join(again.Hints, ""), completeHint) {
				t.Errorf("%+v", again)
			}
		})
	}
}

func mustSplit(t *testing.T, text string) []Share {
	t.Helper()
	split, err := ParseSplit(text)
	require.NoError(t, err)
	return split
}

// An append that was stopped is continued, and nothing was sent before.
func TestAppendInBucketResumes(t *testing.T) {
	b, here, there := appendConfig(t, func(*Config) {})
	want := mustRun(t, here)
	before := keysOf(t, b, "ds/")
	there.Checkpoint = 1
	stopped(t, there, 9)
	if now := keysOf(t, b, "ds/"); len(now) != len(before) {
		t.Errorf("%q", now)
	}
	there.Resume = true
	got := mustRun(t, there)
	if got.ID != want.ID || got.Resumed == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAppendInBucketRefused(t *testing.T) {
	b, _, there := appendConfig(t, func(*Config) {})
	b.Put("ds.h5", []byte("\x89HDF\r\n\x1a\n"))
	zarr := config(t, rawtest.Folder(t, 4))
	zarr.Format = Zarr
	mustRun(t, zarr)
	fillBucket(t, b, zarr.Dest, "cut")
	for dest, says := range map[string]string{
		"nothing": "does not exist, so nothing can be appended to it; create it first, without --append",
		"ds.h5":   "ds.h5 is not a flat dataset, and in a bucket only these are appended to; make one of it: ",
		"cut":     "cut is not a flat dataset",
	} {
		there.Dest = urlOf(dest)
		_, err := Run(t.Context(), there, &rawtest.Silent{})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", dest, err)
		}
	}
	there.Dest, there.Images.Crop = urlOf("ds"), []int{8}
	if _, err := Run(t.Context(), there, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "cannot be appended to it") {
		t.Error(err)
	}
	if left, err := os.ReadDir(there.Spool); err != nil || len(left) > 0 {
		t.Errorf("%v is left in the spool: %v", left, err)
	}
	if _, err := b.Stat(t.Context(), "ds/generations/00000002.json"); !errors.Is(err, remote.ErrNotFound) {
		t.Error(err)
	}
}
