package mirror

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/penstock/penstock/store"
)

// sums returns the checksums of an extent's blocks, which are fetched when they are first
// needed; nil where the dataset has none.
func (d *cache) sums(ctx context.Context, x *extent) (store.Checksums, error) {
	if p := x.sums.Load(); p != nil || x.SumsPath == "" {
		if p == nil {
			return nil, nil
		}
		return *p, nil
	}
	select {
	case x.loading <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-x.loading }()
	if p := x.sums.Load(); p != nil {
		return *p, nil
	}
	load := d.loadFlat
	if x.SumsCRC32C == "" {
		load = d.loadBooks
	}
	list, err := load(ctx, x)
	if err != nil {
		return nil, err
	}
	x.sums.Store(&list)
	return list, nil
}

// loadFlat reads a checksum file, whose own checksum the manifest has: from the mirror, where
// it is right there, else from the bucket.
func (d *cache) loadFlat(ctx context.Context, x *extent) (store.Checksums, error) {
	sums, err := x.LoadChecksums(int(x.size), d.readFile)
	if err == nil {
		return sums, nil
	}
	name := filepath.Base(x.SumsPath)
	file, err := d.fetchSums(ctx, x, path.Join(path.Dir(x.object), name), store.HeaderBytes+4*x.count)
	if err != nil {
		return nil, err
	}
	if err := d.write(name, 0, file); err != nil && !isFull(err) {
		return nil, fmt.Errorf("mirror: %s: %w", name, err)
	}
	return file[store.HeaderBytes:], nil
}

// fetchSums fetches a checksum file until it is right.
func (d *cache) fetchSums(ctx context.Context, x *extent, key string, size int64) ([]byte, error) {
	for try := 1; ; try++ {
		data, _, err := d.client.ReadAll(ctx, key, size)
		if err != nil {
			return nil, err
		}
		if err = x.CheckSumsFile(data); err == nil && int64(len(data)) != size {
			err = fmt.Errorf("%d bytes, and not the %d of %d checksums: %w", len(data), size, x.count, store.ErrCorrupt)
		}
		if err == nil {
			return data, nil
		}
		d.counts.wrong.Add(1)
		if try == tries {
			return nil, fmt.Errorf("mirror: %s: %w", d.client.Name(key), err)
		}
	}
}

// loadBooks reads checksums out of an HDF5 file, of which they were fetched when it was opened.
func (d *cache) loadBooks(_ context.Context, x *extent) (store.Checksums, error) {
	sums, err := x.LoadChecksums(int(x.size), d.readFile)
	if err != nil {
		return nil, fmt.Errorf("mirror: %s: its checksums: %w", x.name, err)
	}
	return sums, nil
}

// readFile fills p with bytes of a file of the mirror.
func (d *cache) readFile(path string, p []byte, off int64) error {
	f, err := d.root.Open(filepath.Base(path))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(p, off)
	return err
}

// readAll reads a file of the mirror that has size bytes.
func (d *cache) readAll(name string, size int64) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}
