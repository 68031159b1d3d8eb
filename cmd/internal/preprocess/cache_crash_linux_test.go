package preprocess

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/prepare/raw"
)

// The variables by which a test runs itself as a process that prepares a source.
const (
	crashSource = "PENSTOCK_CRASH_SOURCE"
	crashCache  = "PENSTOCK_CRASH_CACHE"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashSource) == "" {
		os.Exit(m.Run())
	}
	c := cacheFlags{source: os.Getenv(crashSource), dir: os.Getenv(crashCache), workers: 1}
	err := makePrivate(c.dir)
	if err == nil {
		_, err = c.make(context.Background(), &rawtest.Silent{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A preparation that is cut short at any of its steps, by a kill or a power cut, leaves a cache that has the records of
// the source or none. It can be made again. Records that were appended may be appended once more.
func TestCrashesOfACache(t *testing.T) {
	photos := func(t *testing.T) *photoHistory {
		h := &photoHistory{T: t, root: filepath.Join(t.TempDir(), "photos")}
		for i := range 6 {
			h.put(fmt.Sprintf("%s/%d.png", []string{"cat", "dog"}[i%2], i))
		}
		return h
	}
	for name, c := range map[string]struct {
		source func(t *testing.T) *photoHistory
		change func(h *photoHistory) // nil of a source that is prepared for the first time
	}{
		"first": {photos, nil},
		"generation": {photos, func(h *photoHistory) {
			h.put("cat/0.png")
			h.put("bird/9.png") // other labels, too
		}},
		"archives": {func(t *testing.T) *photoHistory {
			h := &photoHistory{T: t, root: filepath.Join(t.TempDir(), "shards")}
			for i := range 3 {
				packed(t, h.root, "tar", i, i)
			}
			return h
		}, func(h *photoHistory) { packed(h.T, h.root, "tar", 1, 8) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := c.source(t)
			h.cache = crash.MemoryDir(t)
			had := int64(0)
			if c.change != nil {
				h.make()
				had = recordsInCache(t, h.cache)
				c.change(h)
			}
			h.testCrashes(had)
		})
	}
}

// testCrashes crashes the preparation of a source whose dataset had records before.
func (h *photoHistory) testCrashes(had int64) {
	var want, appended int64
	trial := crash.Trial{
		Folder: h.cache, Scratch: crash.MemoryDir(h.T), Done: func() {
			want = recordsInCache(h.T, h.cache)
			appended = want - had
		},
		Command: func(folder string) (env, args []string) {
			return []string{crashSource + "=" + h.root, crashCache + "=" + folder}, nil
		},
		GoOn: func(_ crash.State, folder string) error {
			if err := makePrivate(folder); err != nil {
				return err
			}
			if err := h.checkReady(folder); err != nil {
				return fmt.Errorf("before it is made again: %w", err)
			}
			again := *h
			again.cache = folder
			if n := prepared(h.T, &again); n > want+appended {
				return fmt.Errorf("%d records, and %d without the crash, %d of them new", n, want, appended)
			}
			return nil
		},
	}
	trial.Run(h.T)
}

// makePrivate gives folders the modes of a cache, which states of a crash do not have.
func makePrivate(folder string) error {
	return filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}

// checkReady compares the records of a cache, if it has them, with those of the source.
func (h *photoHistory) checkReady(cache string) error {
	src, err := raw.Open(h.Context(), h.root, raw.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	want := recordsOf(h.T, src)
	e, err := rawcache.Find(h.Context(), cache, src)
	if err != nil || !e.Ready {
		return err
	}
	ds, places, held, err := e.Open(nil)
	if err != nil {
		return err
	}
	if err := src.Use(ds, places, held); err != nil {
		return err
	}
	if !sameRecords(recordsOf(h.T, src), want) {
		return fmt.Errorf("%s has other records", e.Name)
	}
	return nil
}
