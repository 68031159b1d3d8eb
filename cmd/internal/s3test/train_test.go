package s3test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

// testStore trains from a store and makes datasets in it, by its URLs alone.
func testStore(t *testing.T, url func(key string) string) {
	t.Run("train", func(t *testing.T) { testTraining(t, url("sets/train")) })
	t.Run("preprocess", func(t *testing.T) { testPreprocess(t, url) })
	t.Run("generations", func(t *testing.T) { testGenerations(t, url("sets/changed")) })
	t.Run("zarr", func(t *testing.T) { testZarrGenerations(t, url("sets/changed.zarr")) })
	t.Run("append", func(t *testing.T) { testAppend(t, url("sets/appended")) })
}

// testTraining writes a dataset to a URL: what comes from there are the bytes of the local one,
// each fetched once.
func testTraining(t *testing.T, url string) {
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, 3000, 28, 28)
	b, u, err := cloud.Open(t.Context(), url)
	require.NoError(t, err)
	defer b.Close()
	upload(t, b, dir, u.Key)
	local, err := mmapds.Open(dir)
	require.NoError(t, err)
	defer local.Close()
	d := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	for epoch := range 3 {
		opts := loader.Options{BatchSize: 128, Sampler: sampler.Shuffle{}, Seed: 1, World: loader.World{Rank: epoch % 2, Size: 2}}
		want, n := digest(t, local, opts, epoch)
		if got, m := digest(t, d, opts, epoch); got != want || n != m {
			t.Errorf("epoch %d: other bytes than from the local dataset (%d and %d)", epoch, m, n)
		}
	}
	if st := d.Stats(); st.Fetched != local.Files().Bytes() {
		t.Errorf("%d bytes were fetched of %d: %+v", st.Fetched, local.Files().Bytes(), st)
	}
}

func TestS3(t *testing.T) {
	s := Start(t)
	testStore(t, func(key string) string { return s.URL(s.Address, key) })
}

// A State that was taken over a bucket resumes over the local copy, and the other way round.
func TestResumeElsewhere(t *testing.T) {
	s := Start(t)
	dir := filepath.Join(s.Root, "ds")
	write(t, dir, 1000, 8, 8)
	local, err := mmapds.Open(dir)
	require.NoError(t, err)
	defer local.Close()
	d := openURL(t, s.URL(s.Address, "ds"), mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 9}
	for _, pair := range [][2]loader.Source{{d, local}, {local, d}} {
		first, err := loader.New(pair[0], opts)
		require.NoError(t, err)
		seen := make(map[int]int)
		n := 0
		for b, err := range first.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			for _, i := range b.Indices() {
				seen[i]++
			}
			if n++; n == 5 {
				break
			}
		}
		second, err := loader.Resume(pair[1], opts, first.State())
		require.NoError(t, err)
		for b, err := range second.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			for _, i := range b.Indices() {
				seen[i]++
			}
		}
		first.Close()
		second.Close()
		if len(seen) != 1000 {
			t.Errorf("%d of 1000 records were seen", len(seen))
		}
	}
}

func TestErrorsOfAServer(t *testing.T) {
	s := Start(t)
	cache := filepath.Join(t.TempDir(), "cache")
	quick := remote.Policy{Attempts: 2}
	open := func(url string) error {
		d, err := tryURL(t.Context(), url, mirror.Options{CacheDir: cache, Policy: quick})
		if err == nil {
			d.Close()
		}
		return err
	}
	if err := open(s.URL(s.Address, "nothing/here")); !errors.Is(err, remote.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that is not there: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if err := open(s.URL(s.Address, "nothing/here")); !errors.Is(err, remote.ErrPermission) {
		t.Errorf("a wrong password: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", SecretKey)
	write(t, filepath.Join(s.Root, "ds"), 500, 64, 64)
	d := openURL(t, s.URL(s.Address, "ds"), mirror.Options{CacheDir: cache, Policy: quick})
	s.Stop()
	err := d.Gather(t.Context(), "images", []int{1}, make([]byte, 64*64))
	if !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("a server that is gone: %v", err)
	}
	t.Log(err)
}
