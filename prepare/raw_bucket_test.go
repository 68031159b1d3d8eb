package prepare

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/testkit/farbucket"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/webtest"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
)

// openRaw opens a source until the end of the test.
func openRaw(t *testing.T, path string, o OpenOptions) *raw.Source {
	t.Helper()
	src, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// allValues returns the values of all records, field by field.
func allValues(t *testing.T, src *raw.Source) (all [][]byte) {
	t.Helper()
	indices := make([]int, src.Len())
	for i := range indices {
		indices[i] = len(indices) - 1 - i
	}
	for _, spec := range src.Specs() {
		all = append(all, values(t, src, spec, indices))
	}
	return all
}

func fingerprint(t *testing.T, src *raw.Source) string {
	t.Helper()
	print, err := src.Fingerprint(t.Context())
	require.NoError(t, err)
	return print.Digest
}

// A source in a bucket has the records of the same one here, and a fingerprint that changes with any object.
func TestOpenInBucket(t *testing.T) {
	for name, path := range rawSources(t) {
		b := &slowBucket{Memory: &membucket.Memory{Name: "s3://lab", Pages: 7}}
		useURLs(t, b)
		folder := path
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			folder = filepath.Dir(path) // a table names files next to it
		}
		fillBucket(t, b, folder, "raw")
		url := "s3://lab/raw"
		if folder != path {
			url += "/" + filepath.Base(path)
		}
		here, there := openRaw(t, path, OpenOptions{}), openRaw(t, url, OpenOptions{})
		if there.Path() != url || there.Len() != here.Len() || !slices.EqualFunc(allValues(t, here), allValues(t, there), bytes.Equal) {
			t.Errorf("%s: %d records of %s, and %d of %s", name, there.Len(), url, here.Len(), path)
		}
		before := fingerprint(t, there)
		if again := fingerprint(t, openRaw(t, url, OpenOptions{})); again != before {
			t.Errorf("%s: two fingerprints of one source", name)
		}
		key := slices.Sorted(slices.Values(keysOf(t, b, "raw")))[0]
		if folder != path {
			key = "raw/" + filepath.Base(path)
		}
		data, err := os.ReadFile(filepath.Join(folder, strings.TrimPrefix(key, "raw")))
		require.NoError(t, err)
		b.Put(key, data) // the same bytes, and another version
		if again := fingerprint(t, openRaw(t, url, OpenOptions{})); again == before {
			t.Errorf("%s: the fingerprint stayed when %s was replaced", name, key)
		}
	}
}

// A part that was fetched into a folder is not fetched again by another process; an object that was replaced is an error, and
// never the bytes of another version.
func TestOpenInBucketKeeps(t *testing.T) {
	path := rawtest.Folder(t, 12)
	b := useBucket(t, path)
	dir := t.TempDir()
	var want [][]byte
	for run := range 2 {
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		src := openRaw(t, "s3://lab/photos", OpenOptions{})
		src.Keep(root)
		reads := b.reads.Load()
		got := allValues(t, src)
		if run == 0 {
			want = got
		} else if n := b.reads.Load() - reads; n > 0 || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%d requests for what is in the folder", n)
		}
	}
	src := openRaw(t, "s3://lab/photos", OpenOptions{})
	key := keysOf(t, b, "photos/cat")[1]
	b.Put(key, rawtest.Picture(t, ".png", 9, 9, 1))
	if _, err := src.GatherRagged(t.Context(), "images", []int{1}, make([]int64, 2), nil); err == nil ||
		!strings.Contains(err.Error(), "was replaced while it was read") || !strings.Contains(err.Error(), strings.TrimPrefix(key, "photos/")) {
		t.Errorf("an object that was replaced: %v", err)
	}
}

// All records of a batch are fetched before they are needed, also those that are more than are fetched at a time.
func TestOpenInBucketPrefetchesWholeBatches(t *testing.T) {
	path := rawtest.Folder(t, 300)
	b := useBucket(t, path)
	src := openRaw(t, "s3://lab/photos", OpenOptions{})
	want := b.reads.Load() + int64(src.Len()) - 1 // the first sample was read already, to see what it is
	require.NoError(t, src.Prefetch("images", 0, src.Len()))
	for end := time.Now().Add(20 * time.Second); b.reads.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d files were not fetched before they were read", want-b.reads.Load(), src.Len())
		}
	}
	allValues(t, src)
}

// Sources on a web server and on the Hub are those of the files, and have fingerprints.
func TestOpenOnTheWeb(t *testing.T) {
	dir := t.TempDir()
	photos := rawtest.Folder(t, 6)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "photos"), os.DirFS(photos)))
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Dir(tarOf(t, photos)))))
	var faults atomic.Int64
	files := httptest.NewServer(webtest.Faulty(webtest.Files(os.DirFS(dir)), &faults))
	defer files.Close()
	hub := httptest.NewServer(webtest.Faulty(&webtest.Hub{
		Dataset: "lab/ds", Branch: "main", Commit: strings.Repeat("12345678", 5), Files: os.DirFS(dir), CDN: files.URL, Page: 3,
	}, &faults))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	tars, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil || len(tars) != 1 {
		t.Fatal(tars, err)
	}
	tar := filepath.Base(tars[0])
	for url, here := range map[string]string{files.URL + "/" + tar: tars[0], "hf://datasets/lab/ds/" + tar: tars[0], "hf://datasets/lab/ds/photos": photos} {
		src := openRaw(t, url, OpenOptions{})
		if !slices.EqualFunc(allValues(t, openRaw(t, here, OpenOptions{})), allValues(t, src), bytes.Equal) {
			t.Errorf("%s has other records", url)
		}
		fingerprint(t, src)
	}
	if _, err := Open(t.Context(), files.URL+"/photos", OpenOptions{}); err == nil || !strings.Contains(err.Error(), files.URL+"/photos") {
		t.Errorf("a folder of a web server: %v", err)
	}
}

// opensWithin opens a URL of a bucket, and checks the number of records and that trips and requests are not exceeded.
func opensWithin(t *testing.T, b *farbucket.Bucket, url string, records, trips, requests int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src, err := Open(t.Context(), url, OpenOptions{})
		require.NoError(t, err)
		defer src.Close()
		fingerprint(t, src)
		took, list := time.Since(began), b.Requests()
		if src.Len() != records || took > time.Duration(trips)*b.Trip || len(list) > requests {
			t.Errorf("%d records after %v and %d requests: %v", src.Len(), took, len(list), list)
		}
	})
}

// The names of 8,000 files in 1,000 folders are listed in the time of two requests, and the first file is read meanwhile.
// Those of one folder take nine, as a page says where the next one begins.
func TestOpenInBucketTakesFewRoundTrips(t *testing.T) {
	picture := rawtest.Picture(t, ".png", 9, 9, 1)
	for _, c := range []struct {
		key             func(i int) string
		trips, requests int
	}{
		{func(i int) string { return fmt.Sprintf("photos/class%04d/%06d.png", i%1000, i) }, 2, 20},
		{func(i int) string { return fmt.Sprintf("photos/%06d.png", i) }, 9, 20},
	} {
		b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "s3://lab"}, Trip: 50 * time.Millisecond}
		for i := range 8000 {
			b.Put(c.key(i), picture)
		}
		useURLs(t, b)
		opensWithin(t, b, "s3://lab/photos", 8000, c.trips, c.requests)
	}
}

// Files next to images are read many at a time, and only a few if they are an error.
func TestOpenInBucketWithSidecars(t *testing.T) {
	picture := rawtest.Picture(t, ".png", 9, 9, 1)
	for _, c := range []struct {
		name, end, from, problem string
		trips, requests          int
	}{
		{"class%[2]d/%03[1]d", ".txt", "imagefolder", "", 40, 1080},
		{"class%[2]d/%03[1]d", ".txt", "", "class0/000.txt has the name of 000.png", 12, 80},
		{"%03d%.0d", ".json", "imagefolder", "", 40, 1080},
		{"%03d%.0d", ".json", "", "000.json has the name of 000.png", 45, 1100},
	} {
		b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "s3://lab"}, Trip: 50 * time.Millisecond}
		for i := range 1000 {
			name := "photos/" + fmt.Sprintf(c.name, i, i%100)
			b.Put(name+".png", picture)
			b.Put(name+c.end, []byte("{}"))
		}
		b.Put("photos/"+fmt.Sprintf(c.name, 1000, 0), picture) // an image by its content
		useURLs(t, b)
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			src, err := Open(t.Context(), "s3://lab/photos", OpenOptions{From: c.from})
			if took, n := time.Since(began), len(b.Requests()); took > time.Duration(c.trips)*b.Trip || n > c.requests {
				t.Errorf("%s of kind %q: %v and %d requests", c.end, c.from, took, n)
			}
			switch {
			case c.problem != "":
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("error %v", err)
				}
			case err != nil:
				t.Error(err)
			default:
				if src.Len() != 1001 {
					t.Errorf("%d records", src.Len())
				}
				src.Close()
			}
		})
	}
}

// An archive is asked for its size once, and read from its beginning on.
func TestOpenArchiveInBucketTakesFewRoundTrips(t *testing.T) {
	tar, err := os.ReadFile(tarOf(t, rawtest.Folder(t, 12)))
	require.NoError(t, err)
	b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "s3://lab"}, Trip: 50 * time.Millisecond}
	b.Put("photos.tar", tar)
	useURLs(t, b)
	opensWithin(t, b, "s3://lab/photos.tar", 12, 2, 2)
}

// The first records of a shuffled Parquet file, as the Hub stores images, take the time of five requests and the bytes of
// their pages.
func TestOpenParquetInBucketTakesFewRoundTrips(t *testing.T) {
	rows := hubRows(t, 1)
	for len(rows) < 3000 { // 30 MB
		r := rows[0]
		r.Image.Bytes = append(bytes.Clone(r.Image.Bytes), make([]byte, 10_000)...)
		rows = append(rows, r)
	}
	path := filepath.Join(t.TempDir(), "train.parquet")
	err := parquet.WriteFile(path, rows, parquet.MaxRowsPerRowGroup(1000), parquet.PageBufferSize(500<<10))
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "s3://lab"}, Trip: 50 * time.Millisecond}
	b.Put("train.parquet", data)
	useURLs(t, b)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src, err := Open(t.Context(), "s3://lab/train.parquet", OpenOptions{Columns: "image,label"})
		require.NoError(t, err)
		defer src.Close()
		fingerprint(t, src)
		for i := range 8 {
			require.NoError(t, src.Prefetch("images", i*371+5, i*371+6))
		}
		for i := range 8 {
			if _, err := src.GatherRagged(t.Context(), "images", []int{i*371 + 5}, make([]int64, 2), nil); err != nil {
				t.Fatal(err)
			}
		}
		took, list, sum := time.Since(began), b.Requests(), int64(0)
		for _, r := range list {
			sum += r.Bytes
		}
		if took > 5*b.Trip || len(list) > 11 || sum > int64(len(data))*3/4 {
			t.Errorf("%v and %d requests for %d of %d bytes: %v", took, len(list), sum, len(data), list)
		}
	})
}

// Labels of images without objects say nothing of the kind of a folder: up to 256 of them are read at a time.
func TestOpenInBucketWithEmptyLabels(t *testing.T) {
	picture := rawtest.Picture(t, ".png", 9, 9, 1)
	b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "s3://lab"}, Trip: 50 * time.Millisecond}
	for i := range 300 {
		b.Put(fmt.Sprintf("photos/images/%03d.png", i), picture)
		b.Put(fmt.Sprintf("photos/labels/%03d.txt", i), nil)
	}
	b.Put("photos/labels/299.txt", []byte("0 0.5 0.5 0.2 0.2\n"))
	useURLs(t, b)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src, err := Open(t.Context(), "s3://lab/photos", OpenOptions{})
		require.NoError(t, err)
		defer src.Close()
		if took := time.Since(began); src.Len() != 300 || len(src.Specs()) < 2 || took > 40*b.Trip {
			t.Errorf("%d records of %d fields after %v", src.Len(), len(src.Specs()), took)
		}
	})
}

// encoded builds the dataset that the cache has of a source.
func encoded(t *testing.T, source string) string {
	t.Helper()
	c := DefaultConfig()
	c.Source, c.Dest, c.Workers = source, filepath.Join(t.TempDir(), "ds"), 2
	c.Images.KeepEncoded, c.Images.Normalize = true, normalizeOf(t, "none")
	mustRun(t, c)
	return c.Dest
}

// An object of a bucket that was replaced, added or removed is fetched alone for the next generation of a dataset. One that
// was written again with the same bytes is another version, which is fetched, and appended only if it differs.
func TestRenewInBucket(t *testing.T) {
	b := useBucket(t, rawtest.Folder(t, 12))
	const url = "s3://lab/photos"
	dest := encoded(t, url)
	source := openRaw(t, url, OpenOptions{})
	before, err := source.Fingerprint(t.Context())
	require.NoError(t, err)
	keys := slices.Sorted(slices.Values(keysOf(t, b, "photos")))
	b.Put(keys[1], rawtest.Picture(t, ".png", 9, 9, 1))
	b.Put("photos/cat/zz.png", rawtest.Picture(t, ".png", 9, 9, 2))
	require.NoError(t, b.Delete(t.Context(), keys[4]))
	if changed, err := Open(t.Context(), url, OpenOptions{}); err != nil {
		t.Fatal(err)
	} else if after, err := changed.Fingerprint(t.Context()); err != nil || after.Digest == before.Digest {
		t.Fatal(err)
	} else {
		defer changed.Close()
		places, fresh := make([]int64, changed.Len()), 0
		for i, key := range after.Keys {
			if places[i] = int64(slices.Index(before.Keys, key)); places[i] < 0 {
				fresh++
			}
		}
		reads := b.reads.Load()
		generation, err := changed.Renew(t.Context(), dest, places, 2)
		if err != nil || fresh != 2 || generation != 2 || b.reads.Load()-reads > 3 { // the first record says what all are
			t.Errorf("generation %d, %d records and %d requests for two objects: %v", generation, fresh, b.reads.Load()-reads, err)
		}
		want := allValues(t, openRaw(t, url, OpenOptions{}))
		ds, err := mmapds.Open(dest)
		require.NoError(t, err)
		require.NoError(t, changed.Use(ds, places, io.NopCloser(nil)))
		if !slices.EqualFunc(allValues(t, changed), want, bytes.Equal) {
			t.Error("the generation has other records")
		}
	}
}
