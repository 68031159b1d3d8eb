package s3test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// uploaded copies the dataset in dir to a URL, and returns the connection.
func uploaded(t *testing.T, dir, url string) (remote.Bucket, *remote.URL) {
	t.Helper()
	b, u, err := cloud.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	upload(t, b, dir, u.Key)
	return b, u
}

// testGenerations changes a dataset by several writers at once, each with a connection and a spool of its own. All
// changes are made, one after the other, and readers keep what they opened.
func testGenerations(t *testing.T, url string) {
	const records, writers = 500, 6
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, records, 28, 28)
	b, u := uploaded(t, dir, url)
	old := objects(t, b, u.Key)
	reader := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})

	var all sync.WaitGroup
	for k := range writers {
		all.Go(func() {
			own, u, err := cloud.Open(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			f := store.NewField(fmt.Sprint("column", k), tensor.Int64)
			if _, err := edit.InBucket(t.Context(), own, u.Key, t.TempDir()).AddColumn(f, counting(k, records), edit.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ds := edit.InBucket(t.Context(), b, u.Key, t.TempDir())
	log, err := ds.Log()
	if err != nil || len(log) != writers+1 || len(log[0].Columns) != len(log[writers].Columns)+writers {
		t.Fatalf("%+v, %v", log, err)
	}
	for name, was := range old {
		if now := objects(t, b, u.Key)[name]; name != "manifest.json" && (now.Size != was.Size || now.ETag != was.ETag) {
			t.Errorf("%s was %+v, and is %+v", name, was, now)
		}
	}
	newest := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	if g := newest.Manifest().Generation; g != writers+1 {
		t.Errorf("generation %d", g)
	}
	for k := range writers {
		value := make([]byte, 8)
		if err := newest.Gather(t.Context(), fmt.Sprint("column", k), []int{7}, value); err != nil || binary.LittleEndian.Uint64(value) != uint64(1000*k+7) {
			t.Errorf("column %d: %d, %v", k, value, err)
		}
	}
	require.NoError(t, ds.Tag("first", 1))
	if err := ds.Tag("first", 1); !errors.Is(err, store.ErrExist) {
		t.Errorf("a tag was made again: %v", err)
	}
	if _, err := ds.Restore("first", edit.Options{}); err != nil {
		t.Fatal(err)
	}
	if p, err := ds.Prune(edit.PruneOptions{Within: 24 * time.Hour}); err != nil || len(p.Generations) > 0 || p.Files > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	time.Sleep(1100 * time.Millisecond) // stores have times of seconds
	p, err := ds.Prune(edit.PruneOptions{})
	if err != nil || len(p.Generations) != writers || p.Files != 2*writers {
		t.Errorf("%+v, %v", p, err)
	}
	opts := loader.Options{BatchSize: 50, Sampler: sampler.Shuffle{}}
	again := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	first, _ := digest(t, reader, opts, 0)
	if now, _ := digest(t, again, opts, 0); now != first {
		t.Error("generation 1 that was restored has other bytes")
	}
}

// testZarrGenerations changes Zarr by several writers at once. All changes are made, earlier generations stay, and the
// objects that each generation replaces are those of the newest.
func testZarrGenerations(t *testing.T, url string) {
	const records, writers = 300, 3
	dir := filepath.Join(t.TempDir(), "ds.zarr")
	err := fill(records, func(s store.Schema) (store.Writer, error) {
		return zarr.Create(dir, s, zarr.Options{ShardBytes: 100 << 10})
	}, 28, 28)
	require.NoError(t, err)
	b, u := uploaded(t, dir, url)
	var all sync.WaitGroup
	for k := range writers {
		all.Go(func() {
			ds := edit.InBucket(t.Context(), b, u.Key, t.TempDir())
			f := store.NewField(fmt.Sprint("column", k), tensor.Int64)
			if _, err := ds.AddColumn(f, counting(k, records), edit.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ds := edit.InBucket(t.Context(), b, u.Key, t.TempDir())
	if _, err := ds.Delete(edit.Chosen{Words: []uint64{1, 0, 0, 0, 0}}, edit.Options{}); err != nil {
		t.Fatal(err)
	}
	copied := fetch(t, url)
	for _, path := range []string{copied, copied + "@1"} {
		d, err := store.OpenZarr(path, store.OpenOptions{})
		require.NoError(t, err)
		if v, err := verify.Dataset(t.Context(), d, verify.Options{}); err != nil || v.Corruptions > 0 || !v.Identity {
			t.Errorf("%s: %+v, %v", path, v, err)
		}
	}
	newest := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	if newest.Len() != records-1 {
		t.Errorf("%d records", newest.Len())
	}
	for k := range writers {
		value := make([]byte, 8)
		if err := newest.Gather(t.Context(), fmt.Sprint("column", k), []int{6}, value); err != nil || binary.LittleEndian.Uint64(value) != uint64(1000*k+7) {
			t.Errorf("column %d: %d, %v", k, value, err)
		}
	}
	time.Sleep(1100 * time.Millisecond) // stores have times of seconds
	before := len(fetchNames(t, b, u.Key))
	if _, err := ds.Restore("1", edit.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := ds.Prune(edit.PruneOptions{})
	if err != nil || len(p.Generations) != writers+2 || p.Files < 4*writers {
		t.Errorf("%+v, %v", p, err)
	}
	if now := len(fetchNames(t, b, u.Key)); now != before+1-int(p.Files)-len(p.Generations) {
		t.Errorf("%d objects, %d before", now, before)
	}
}

// testAppend appends records from two writers at once.
func testAppend(t *testing.T, url string) {
	const records, more = 200, 50
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, records, 28, 28)
	b, u := uploaded(t, dir, url)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			ds := edit.InBucket(t.Context(), b, u.Key, t.TempDir())
			err := fill(more, func(s store.Schema) (store.Writer, error) {
				return ds.Append(s, edit.AppendOptions{ShardBytes: 16 << 10})
			}, 28, 28)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	d := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	if d.Len() != records+2*more || d.Manifest().Generation != 3 {
		t.Fatalf("%d records in generation %d", d.Len(), d.Manifest().Generation)
	}
	first, again := make([]byte, 28*28), make([]byte, 28*28)
	for i := range more { // fill gives all the same records
		for _, at := range []int{records + i, records + more + i} {
			err := errors.Join(d.Gather(t.Context(), "images", []int{i}, first), d.Gather(t.Context(), "images", []int{at}, again))
			if err != nil || !bytes.Equal(first, again) {
				t.Fatalf("record %d: %v", at, err)
			}
		}
	}
}

// fetchNames returns the names of all objects under a key.
func fetchNames(t *testing.T, b remote.Bucket, key string) (names []string) {
	t.Helper()
	for o, err := range requests.NewClient(b, remote.Policy{}).List(t.Context(), key+"/", "") {
		require.NoError(t, err)
		names = append(names, o.Key)
	}
	return names
}

func counting(k, n int) edit.Values {
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := int(first); i < n; i++ {
				if !yield(binary.LittleEndian.AppendUint64(nil, uint64(1000*k+i)), nil) {
					return
				}
			}
		}
	}
}

// objects returns what is under a key, by name.
func objects(t *testing.T, b remote.Bucket, key string) map[string]remote.Object {
	t.Helper()
	p, err := b.ListPage(t.Context(), key+"/", "/", nil)
	require.NoError(t, err)
	list := make(map[string]remote.Object)
	for _, o := range slices.DeleteFunc(p.Objects, func(o remote.Object) bool { return o.Folder }) {
		list[o.Key[len(key)+1:]] = o
	}
	return list
}
