package s3test

import (
	"context"
	"errors"
	"hash/maphash"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// write makes a flat dataset of n images of the given shape, with labels, in a folder.
func write(t testing.TB, dir string, n int, shape ...int) {
	t.Helper()
	err := fill(n, func(s store.Schema) (store.Writer, error) {
		return flat.Create(dir, s, flat.Options{ShardBytes: 64 << 20})
	}, shape...)
	require.NoError(t, err)
}

// fill writes n images and labels.
func fill(n int, create func(store.Schema) (store.Writer, error), shape ...int) (err error) {
	schema := store.Schema{Fields: []store.Field{store.NewField("images", tensor.Uint8, shape...), store.NewField("labels", tensor.Int64)}}
	w, err := create(schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r := store.NewRecord(schema)
	for i := range n {
		x := uint32(i)*2654435761 + 1
		for _, v := range r.Values {
			for k := range v {
				x ^= x << 13
				x ^= x >> 17
				x ^= x << 5
				v[k] = byte(x)
			}
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// openURL opens a dataset by its URL.
func openURL(t testing.TB, url string, opts mirror.Options) *mirror.Dataset {
	t.Helper()
	d, err := tryURL(t.Context(), url, opts)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func tryURL(ctx context.Context, url string, opts mirror.Options) (*mirror.Dataset, error) {
	b, u, err := cloud.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return mirror.Open(ctx, b, u.Key, opts)
}

var seed = maphash.MakeSeed()

// digest reads an epoch and returns a hash over all its bytes, in order, and how many they are.
func digest(t testing.TB, src loader.Source, opts loader.Options, epoch int) (sum uint64, n int64) {
	t.Helper()
	ld, err := loader.New(src, opts)
	require.NoError(t, err)
	defer ld.Close()
	var h maphash.Hash
	h.SetSeed(seed)
	for b, err := range ld.Epoch(t.Context(), epoch) {
		require.NoError(t, err)
		for _, s := range ld.Specs() {
			data := b.Field(s.Name).Bytes()
			h.Write(data)
			n += int64(len(data))
		}
	}
	return h.Sum64(), n
}

// upload writes the files of a folder, or a file, to a bucket with its writers.
func upload(t testing.TB, b remote.Bucket, dir, key string) {
	t.Helper()
	c := requests.NewClient(b, remote.Policy{})
	for name, data := range foldertest.Files(t, dir) {
		require.NoError(t, c.WriteAll(t.Context(), path.Join(key, filepath.ToSlash(name)), []byte(data), remote.WriteOptions{}))
	}
}

// fetch returns a folder with all objects below a URL.
func fetch(t *testing.T, url string) (dir string) {
	t.Helper()
	b, u, err := cloud.Open(t.Context(), url)
	require.NoError(t, err)
	defer b.Close()
	c := requests.NewClient(b, remote.Policy{})
	dir = t.TempDir()
	for o, err := range c.List(t.Context(), u.Key+"/", "") {
		require.NoError(t, err)
		data, _, err := c.ReadAll(t.Context(), o.Key, 1<<30)
		require.NoError(t, err)
		name := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(o.Key, u.Key)))
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644)))
	}
	return dir
}
