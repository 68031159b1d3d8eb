package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// zarrName is the folder in a mirror of Zarr that has the dataset.
const zarrName = "data.zarr"

// planZarr returns the plan of a dataset in Zarr.
func (op *opener) planZarr(key string, m *store.Manifest, data []byte) *plan {
	p := &plan{file: zarrName, folder: folderName("zarr", op.cache.client.Bucket().String(), key, string(data),
		fmt.Sprint(op.cache.opts.Fields))}
	p.prepare = func(ctx context.Context) (*store.Dataset, error) {
		op.cache.fetcher.version.seal = newSeal(key, layout.ZarrManifest, m, data)
		return op.prepareZarr(ctx, &zarrFiles{op, key, m, data})
	}
	return p
}

// prepareZarr makes the files of the mirror. It fetches compressed columns as a whole, since they
// cannot be mapped.
func (op *opener) prepareZarr(ctx context.Context, z *zarrFiles) (whole *store.Dataset, err error) {
	err = op.cache.files.alone(func(locks) (err error) {
		whole, err = z.skeleton(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	op.cache.index.grid, err = newGrid(whole, func(file string) (name, object string) {
		name = op.cache.files.name(file)
		return name, path.Join(z.key, filepath.ToSlash(name)[len(zarrName):])
	})
	if err != nil {
		return nil, err
	}
	return whole, op.cache.index.open()
}

// zarrFiles makes the files of a dataset in Zarr.
type zarrFiles struct {
	op       *opener
	key      string
	manifest *store.Manifest
	text     []byte // the manifest as stored
}

// skeleton makes all files. Shards that can be mapped are holes after their index. The manifest comes last, so that a
// skeleton without a manifest is not finished.
func (z *zarrFiles) skeleton(ctx context.Context) (*store.Dataset, error) {
	root, dir := z.op.cache.files.root, filepath.Join(z.op.cache.files.dir, zarrName)
	last := path.Join(zarrName, layout.ZarrManifest)
	if got, err := z.op.cache.files.readAll(last, int64(len(z.text))+1); err == nil && bytes.Equal(got, z.text) {
		if whole, err := store.OpenZarr(dir, store.OpenOptions{}); err == nil {
			return whole, nil
		}
	}
	if err := root.RemoveAll(zarrName); err != nil { // a skeleton that is not finished, or that was changed
		return nil, err
	}
	if err := z.fetchNodes(ctx, dir); err != nil {
		return nil, err
	}
	g, err := zarr.Open(vfs.Folder(dir))
	if err != nil {
		return nil, err
	}
	arrays := make(map[string]*zarr.Array)
	for _, a := range g.Arrays {
		arrays["/"+a.Path] = a
	}
	for _, c := range layout.Columns(z.manifest.Schema().Specs()) {
		c.Stored = z.manifest.Arrays[c.FieldName()]
		if err := z.fetchColumn(ctx, &c, arrays[c.Path()], arrays[c.SumsPath()]); err != nil {
			return nil, err
		}
	}
	if err := root.MkdirAll(path.Dir(last), 0o700); err != nil {
		return nil, err
	}
	if err := private.Replace(root, last, 0o600, z.text); err != nil {
		return nil, err
	}
	return store.OpenZarr(dir, store.OpenOptions{})
}

// fetchNodes makes the files of metadata. The files that each generation replaces are computed from the other files: in
// the bucket a later generation may have replaced them already. If the computed files do not have the manifest's
// checksums, another version of penstock wrote them in another way, and they are fetched.
func (z *zarrFiles) fetchNodes(ctx context.Context, dir string) error {
	var shared, replaced []string
	for name := range z.manifest.Metadata {
		if layout.OfNewest(name) {
			replaced = append(replaced, name)
		} else {
			shared = append(shared, name)
		}
	}
	if err := together(ctx, maxInFlight, slices.Values(shared), z.fetchNode); err != nil {
		return err
	}
	files, err := write.FilesOf(vfs.Folder(dir), z.text)
	if errors.Is(err, store.ErrCorrupt) {
		return together(ctx, maxInFlight, slices.Values(replaced), z.fetchNode)
	}
	for _, f := range files {
		if err == nil && f.Name != layout.ZarrManifest { // which comes last
			err = z.write(f.Name, 0, bytes.NewReader(f.Text), int64(len(f.Text)))
		}
	}
	return err
}

// fetchNode fetches the metadata of a group or an array. Its size is bounded by the manifest's.
func (z *zarrFiles) fetchNode(ctx context.Context, name string) error {
	return z.repeat(name, func() error {
		text, _, err := z.op.cache.client.ReadAll(ctx, path.Join(z.key, name), 1<<20+16*int64(len(z.text)))
		if err != nil {
			return err
		}
		if got, want := layout.HexCRC(layout.CRC32C(text)), z.manifest.Metadata[name]; got != want {
			return fmt.Errorf("its CRC32C is %s, was %s when it was written: %w", got, want, store.ErrCorrupt)
		}
		return z.write(name, 0, bytes.NewReader(text), int64(len(text)))
	})
}

// repeat repeats a fetch, up to three times, if its bytes differ from the bytes that the writer wrote.
func (z *zarrFiles) repeat(name string, fetch func() error) error {
	for try := 1; ; try++ {
		err := fetch()
		if errors.Is(err, store.ErrCorrupt) {
			z.op.cache.counts.wrong.Add(1)
			if err = fmt.Errorf("%s: %w", z.op.cache.client.Name(path.Join(z.key, name)), err); try < tries {
				continue
			}
		}
		return err
	}
}

// fetchColumn makes the files of a column and of its checksums: shards with their index at the
// start, and a hole after it unless the column is compressed.
func (z *zarrFiles) fetchColumn(ctx context.Context, c *layout.Column, a, sums *zarr.Array) error {
	if a == nil || sums == nil || a.Err != nil || sums.Err != nil {
		return nil // OpenZarr reports the error
	}
	packed := z.manifest.Storage[c.Name] != nil
	if packed && !z.op.wants(c.Path()) {
		return nil
	}
	if sums.Records() > 0 {
		name := path.Join(sums.Path, layout.ZarrSums)
		if err := z.fetch(ctx, name, 0, 4*sums.Records()); err != nil {
			return err
		}
	}
	return together(ctx, maxInFlight, a.ShardNames(), func(ctx context.Context, name string) error {
		n := a.IndexBytes()
		var size int64
		err := z.repeat(name, func() (err error) {
			if err = z.fetch(ctx, name, 0, n); err == nil {
				size, err = a.ShardBytes(name)
			}
			return err
		})
		if err != nil || size <= n {
			return err
		}
		if packed {
			z.op.cache.counts.fetched.Add(size - n)
			return z.fetch(ctx, name, n, size-n)
		}
		return z.op.cache.files.stretch(path.Join(zarrName, name), size)
	})
}

// fetch fetches n bytes of a file.
func (z *zarrFiles) fetch(ctx context.Context, name string, off, n int64) error {
	r := z.op.cache.client.NewReader(ctx, remote.Object{Key: path.Join(z.key, name)}, off, n)
	return errors.Join(z.write(name, off, r, n), r.Close())
}

// write writes n bytes of a file and waits until they are on disk: files that are fetched as a
// whole are not compared with checksums when another process finds them after a crash.
func (z *zarrFiles) write(name string, off int64, from io.Reader, n int64) error {
	name = path.Join(zarrName, name)
	err := z.op.cache.files.root.MkdirAll(path.Dir(name), 0o700)
	if err == nil {
		err = z.op.cache.evictor.room(pages(off, n))
	}
	if err != nil {
		return fmt.Errorf("%s: %w; there must be room for the metadata of Zarr and for all that is compressed",
			z.op.cache.opts.CacheDir, err)
	}
	f, err := z.op.cache.files.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(f, off), from)
	return errors.Join(err, f.Sync(), f.Close())
}
