package preprocess

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/store"
)

// recordsOf returns the values of all records, field by field.
func recordsOf(t *testing.T, src loader.Source) map[string][][]byte {
	t.Helper()
	all := make(map[string][][]byte)
	for _, spec := range src.Specs() {
		for i := range src.Len() {
			value := make([]byte, spec.RecordBytes())
			var err error
			if ragged, ok := src.(loader.RaggedSource); ok && spec.Ragged {
				value, err = ragged.GatherRagged(t.Context(), spec.Name, []int{i}, make([]int64, 2), nil)
			} else {
				err = src.Gather(t.Context(), spec.Name, []int{i}, value)
			}
			if err != nil {
				t.Fatalf("%s of record %d: %v", spec.Name, i, err)
			}
			all[spec.Name] = append(all[spec.Name], bytes.Clone(value))
		}
	}
	return all
}

func sameRecords(a, b map[string][][]byte) bool {
	return maps.EqualFunc(a, b, func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) })
}

// photoHistory is a folder of photographs that changes at random, and a cache.
type photoHistory struct {
	*testing.T
	rng         *rand.Rand
	root, cache string
	files       []string
	made        int
}

func newPhotoHistory(t *testing.T, seed uint64, splits bool) *photoHistory {
	h := &photoHistory{T: t, rng: rand.New(rand.NewPCG(seed, 1)), root: filepath.Join(t.TempDir(), "photos"), cache: t.TempDir()}
	for i := range 24 {
		class := []string{"cat", "dog"}[i%2]
		if splits {
			class = []string{"train", "val"}[i/2%2] + "/" + class
		}
		h.put(fmt.Sprintf("%s/%d.png", class, i))
	}
	return h
}

// put writes a file whose content no other has.
func (h *photoHistory) put(name string) {
	h.made++
	rawtest.Put(h, h.root, name, rawtest.Picture(h, name, 8+h.made%3, 9, h.made))
	if !slices.Contains(h.files, name) {
		h.files = append(h.files, name)
	}
}

func (h *photoHistory) pick() string { return h.files[h.rng.IntN(len(h.files))] }

func (h *photoHistory) drop(name string) {
	h.files = slices.DeleteFunc(h.files, func(f string) bool { return f == name })
}

// change changes the folder once, and returns how.
func (h *photoHistory) change() string {
	name := h.pick()
	path, folder := filepath.Join(h.root, name), filepath.Dir(name)
	siblings := 0
	for _, f := range h.files {
		if filepath.Dir(f) == folder {
			siblings++
		}
	}
	switch k := h.rng.IntN(7); {
	case k == 0 && siblings > 2:
		h.drop(name)
		require.NoError(h, os.Remove(path))
		return "remove " + name
	case k == 1 && siblings > 2:
		to := fmt.Sprintf("%s/%d.png", filepath.Dir(h.pick()), 1000+h.made)
		h.made++
		h.drop(name)
		h.files = append(h.files, to)
		require.NoError(h, os.Rename(path, filepath.Join(h.root, to)))
		return "rename " + name + " " + to
	case k == 2:
		info, err := os.Stat(path)
		if err == nil {
			at := info.ModTime().Add(1e9)
			err = os.Chtimes(path, at, at)
		}
		require.NoError(h, err)
		return "touch " + name
	case k == 3:
		to := filepath.Join(filepath.Dir(folder), fmt.Sprintf("%c%d", 'a'+rune(h.rng.IntN(26)), h.made)) + "/new.png"
		if filepath.Dir(filepath.Dir(to)) == "." && filepath.Dir(folder) != "." {
			return "nothing"
		}
		h.put(to)
		return "add a class: " + to
	case k == 4:
		to := fmt.Sprintf("%s/%d.png", folder, h.made)
		h.put(to)
		return "add " + to
	}
	h.put(name)
	return "change " + name
}

// make makes or renews the dataset, as the command does.
func (h *photoHistory) make() *prepare.Summary {
	h.Helper()
	c := cacheFlags{source: h.root, dir: h.cache, workers: 2}
	s, err := c.make(h.Context(), &rawtest.Silent{})
	require.NoError(h, err)
	return s
}

// check compares what a loader and a view of the cache have with the files.
func (h *photoHistory) check(s *prepare.Summary) {
	h.Helper()
	src, err := raw.Open(h.Context(), h.root, raw.Options{})
	require.NoError(h, err)
	defer src.Close()
	want := recordsOf(h.T, src)
	if _, err := rawcache.Keep(h.Context(), src, rawcache.Options{Dir: h.cache, Mode: rawcache.Encoded}); err != nil || !src.InUse() {
		h.Fatalf("in use: %v, %v", src.InUse(), err)
	}
	if !sameRecords(recordsOf(h.T, src), want) {
		h.Error("a loader has other records")
	}
	ds, err := views.Open(h.Context(), s.Dest, views.Options{Fields: slices.Collect(maps.Keys(want))})
	require.NoError(h, err)
	defer ds.Close()
	if !sameRecords(recordsOf(h.T, ds.Source), want) || int(s.Records) != src.Len() {
		h.Errorf("%s has other records", s.Dest)
	}
}

// Whatever happens to a folder, the cache has its records, as generations of one dataset for as long as most of it stays.
// PENSTOCK_HISTORIES is the number of histories.
func TestHistoriesOfASource(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("PENSTOCK_HISTORIES"))
	if err != nil {
		n = 2
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newPhotoHistory(t, uint64(seed), seed%2 == 1)
			h.check(h.make())
			for range 3 + n/3 {
				for range 1 + h.rng.IntN(3) {
					t.Log(h.change())
				}
				h.check(h.make())
			}
			entries, err := rawcache.List(h.cache)
			if err != nil || len(entries) != 1 {
				t.Fatalf("%+v, %v", entries, err)
			}
			if numbers, err := store.Generations(entries[0].Path); err != nil || len(numbers) < 2 {
				t.Errorf("generations %d, %v", numbers, err)
			}
		})
	}
}

// A generation that does not fit into the cache is not made: the dataset is made afresh.
func TestStatesOfASmallCache(t *testing.T) {
	h := newPhotoHistory(t, 1, false)
	h.make()
	entries, err := rawcache.List(h.cache)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	h.put("cat/0.png")
	for _, c := range []struct {
		limit       int64
		generations int
	}{{entries[0].Bytes + 8<<10, 1}, {10 * entries[0].Bytes, 2}} {
		flags := cacheFlags{source: h.root, dir: h.cache, workers: 1, limit: c.limit}
		s, err := flags.make(t.Context(), &rawtest.Silent{})
		require.NoError(t, err)
		h.check(s)
		entries, err := rawcache.List(h.cache)
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		if numbers, err := store.Generations(entries[0].Path); err != nil || len(numbers) != c.generations {
			t.Errorf("limit %d: generations %d, %v", c.limit, numbers, err)
		}
		h.put("cat/2.png")
	}
}

// Earlier contents of a large file do not pile up: the dataset is made again when they take more than the source does.
func TestBytesOfEarlierStatesAreBounded(t *testing.T) {
	h := newPhotoHistory(t, 5, false)
	large := slices.Concat(rawtest.Picture(t, ".jpg", 8, 8, 0), make([]byte, 1<<20))
	most, renewed := int64(0), 0
	for i := range 7 {
		large[len(large)-1] = byte(i)
		rawtest.Put(t, h.root, "cat/large.jpg", large)
		h.check(h.make())
		entries, err := rawcache.List(h.cache)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		most = max(most, entries[0].Bytes)
		if numbers, err := store.Generations(entries[0].Path); err != nil {
			t.Fatal(err)
		} else if len(numbers) > 1 {
			renewed++
		}
	}
	if n := int64(len(large)); most > 9*n/2 || renewed < 3 { // twice the source, headers, and the last change
		t.Errorf("%d bytes of a source of %d; %d of 6 changes made a generation", most, n, renewed)
	}
}

// A source that lost its last records has those of the dataset before them, whether or not a generation was written.
func TestLastRecordsAreRemoved(t *testing.T) {
	h := newPhotoHistory(t, 3, false)
	h.check(h.make())
	for _, names := range [][]string{{"dog/9.png"}, {"dog/7.png", "dog/5.png"}} {
		for _, name := range names {
			require.NoError(t, os.Remove(filepath.Join(h.root, name)))
		}
		h.check(h.make())
		h.check(h.make())
	}
	h.put("cat/new.png")
	h.check(h.make())
}

// Of the generations of a source that changes often, the first one, the newest and open ones are kept.
func TestForgottenGenerationsAreRemoved(t *testing.T) {
	h := newPhotoHistory(t, 4, false)
	h.make()
	h.put("cat/0.png")
	h.make()
	src, err := raw.Open(t.Context(), h.root, raw.Options{})
	require.NoError(t, err)
	defer src.Close()
	want := recordsOf(t, src)
	if _, err := rawcache.Keep(t.Context(), src, rawcache.Options{Dir: h.cache, Mode: rawcache.Encoded}); err != nil || !src.InUse() {
		t.Fatalf("in use: %v, %v", src.InUse(), err)
	}
	generations := func() []int {
		entries, err := rawcache.List(h.cache)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		numbers, err := store.Generations(entries[0].Path)
		require.NoError(t, err)
		return numbers
	}
	change := func() {
		h.put("cat/2.png")
		h.check(h.make())
	}
	for range 5 {
		change()
	}
	if got := generations(); !slices.Equal(got, []int{1, 2, 7}) || !sameRecords(recordsOf(t, src), want) {
		t.Errorf("while generation 2 is open: %d", got)
	}
	require.NoError(t, src.Close())
	change()
	if got := generations(); !slices.Equal(got, []int{1, 8}) {
		t.Errorf("generations %d", got)
	}
}
