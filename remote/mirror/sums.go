package mirror

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/penstock/penstock/store"
)

// sums returns the checksums of an extent's blocks, which are fetched when they are first
// needed; nil where the dataset has none.
func (d *Dataset) sums(ctx context.Context, x *extent) ([]uint32, error) {
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
func (d *Dataset) loadFlat(ctx context.Context, x *extent) ([]uint32, error) {
	name := filepath.Base(x.SumsPath)
	size := store.HeaderBytes + 4*x.count
	if data, err := d.readAll(name, size); err == nil && store.HexCRC(store.CRC32C(data)) == x.SumsCRC32C {
		return words(data[store.HeaderBytes:]), nil
	}
	key := path.Join(path.Dir(x.object), name)
	data, err := d.fetchSums(ctx, x, key, size)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(data[:store.HeaderBytes], store.SumsHeader(x.count)) {
		return nil, fmt.Errorf("mirror: %s: it is no file of %d checksums: %w", d.client.Name(key), x.count, store.ErrCorrupt)
	}
	if err := d.write(name, 0, data); err != nil && !isFull(err) {
		return nil, fmt.Errorf("mirror: %s: %w", name, err)
	}
	return words(data[store.HeaderBytes:]), nil
}

// fetchSums fetches a checksum file until it is right.
func (d *Dataset) fetchSums(ctx context.Context, x *extent, key string, size int64) ([]byte, error) {
	for try := 1; ; try++ {
		data, _, err := d.client.ReadAll(ctx, key, size)
		if err != nil {
			return nil, err
		}
		got := store.HexCRC(store.CRC32C(data))
		if int64(len(data)) == size && got == x.SumsCRC32C {
			return data, nil
		}
		d.counts.wrong.Add(1)
		if try == tries {
			return nil, fmt.Errorf("mirror: %s: %d bytes with CRC32C %s, but the manifest says %d with %s: %w",
				d.client.Name(key), len(data), got, size, x.SumsCRC32C, store.ErrCorrupt)
		}
	}
}

// loadBooks reads checksums out of an HDF5 file, of which they were fetched when it was opened.
func (d *Dataset) loadBooks(_ context.Context, x *extent) ([]uint32, error) {
	f, err := d.root.Open(x.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, x.SumsOffset, 4*x.count))
	if err == nil && int64(len(data)) != 4*x.count {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: %s: its checksums: %w", x.name, err)
	}
	return words(data), nil
}

// readAll reads a file of the mirror that has so many bytes.
func (d *Dataset) readAll(name string, size int64) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

func words(data []byte) []uint32 {
	list := make([]uint32, len(data)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return list
}
