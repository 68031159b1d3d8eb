package datasetarg

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/farbucket"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
)

// farCache returns a cache of a bucket that is 50 ms away.
func farCache(t *testing.T) (*Cache, *farbucket.Bucket) {
	b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "s3://lab"}, Trip: 50 * time.Millisecond}
	return &Cache{Dir: filepath.Join(t.TempDir(), "cache"), bucket: func(_ context.Context, text string) (remote.Bucket, *remote.URL, error) {
		u, err := remote.ParseURL(text)
		return b, u, err
	}}, b
}

func putFolder(t *testing.T, b *farbucket.Bucket, key, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		b.Put(key+filepath.ToSlash(strings.TrimPrefix(path, folder)), data)
		return err
	})
	require.NoError(t, err)
}

// openFar opens a URL, and returns how many round trips that took.
func openFar(t *testing.T, c *Cache, b *farbucket.Bucket, url string, o Options) (ds *views.Dataset, trips int, asked []farbucket.Request, err error) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ds, err = c.Any(t.Context(), url, o)
		trips, asked = int(time.Since(began)/b.Trip), b.Requests()
		if err == nil {
			err = ds.Close()
		}
	})
	return ds, trips, asked, err
}

func second(_ int, err error) error { return err }

// It is found out whether a URL is that of a dataset while the samples are listed.
func TestRawSamplesOfAURLTakeFewRoundTrips(t *testing.T) {
	c, b := farCache(t)
	picture := rawtest.Picture(t, ".png", 9, 9, 1)
	for i := range 8000 {
		b.Put(fmt.Sprintf("photos/class%04d/%06d.png", i%1000, i), picture)
	}
	for i := range 20 {
		b.Put(fmt.Sprintf("few/%06d.png", i), picture)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for i := range 4000 { // 4 MB: no HDF5 is looked for in it
		h := &tar.Header{Name: fmt.Sprintf("%06d.png", i), Mode: 0o600, Size: int64(len(picture))}
		require.NoError(t, errors.Join(w.WriteHeader(h), second(w.Write(picture))))
	}
	require.NoError(t, w.Close())
	b.Put("photos.tar", archive.Bytes())
	for url, want := range map[string]struct{ records, trips, requests int }{
		"s3://lab/photos.tar": {4000, 3, 12},
		"s3://lab/photos":     {8000, 2, 27},
		"s3://lab/few":        {20, 2, 13},
	} {
		ds, trips, asked, err := openFar(t, c, b, url, Options{Prepare: rawcache.Off})
		if err != nil || ds.Source.Len() != want.records || trips > want.trips || len(asked) > want.requests {
			t.Errorf("%s: %d trips and %d requests, error %v: %v", url, trips, len(asked), err, asked)
		}
	}
}

// A dataset is opened in the time that it takes without a look for samples, which ends then. That look lists the folder
// twice to find tables with a log of versions, Delta's and others.
func TestDatasetOfAURLTakesFewRoundTrips(t *testing.T) {
	c, b := farCache(t)
	putFolder(t, b, "ds", datasettest.Animals(t))
	b.Put("empty/notes", []byte("nothing"))
	ds, trips, asked, err := openFar(t, c, b, "s3://lab/ds", Options{Prepare: rawcache.Off})
	if err != nil || ds.Source.Len() == 0 || trips > 1 || len(asked) > 11 {
		t.Errorf("%d trips and %d requests, error %v: %v", trips, len(asked), err, asked)
	}
	for url, want := range map[string]string{
		"s3://lab/missing": "it is not a penstock dataset",
		"s3://lab/empty":   "and as raw samples: ",
	} {
		if _, trips, asked, err = openFar(t, c, b, url, Options{}); err == nil || !strings.Contains(err.Error(), want) || trips > 7 {
			t.Errorf("%s: %d trips %v, error %v", url, trips, asked, err)
		}
	}
	if _, _, _, err = openFar(t, c, b, "s3://lab/empty", Options{Verify: mmapds.WithVerify(mmapds.VerifyFirstTouch)}); err == nil ||
		!strings.Contains(err.Error(), "verify: raw samples that are not prepared have no checksums") {
		t.Errorf("error %v", err)
	}
}
