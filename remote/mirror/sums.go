package mirror

import (
	"context"
	"fmt"
	"path"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/store"
)

// checksums has the checksums with which blocks are compared: the dataset's checksums, which are
// fetched when they are first needed or, for a block without a checksum, the checksum that the
// block had on arrival.
type checksums struct {
	files  *files
	client *requests.Client
	counts *counts
}

// load returns the checksums of an extent's blocks, nil if the dataset has no checksums. Several
// goroutines that need them wait for a single fetch.
func (s *checksums) load(ctx context.Context, x *extent) (layout.Checksums, error) {
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
	load := s.loadFlat
	if x.SumsCRC32C == "" {
		load = s.loadMetadata
	}
	list, err := load(ctx, x)
	if err != nil {
		return nil, err
	}
	x.sums.Store(&list)
	return list, nil
}

// loadFlat returns the checksums in a checksum file, whose own checksum is in the manifest: from
// the mirror if the file is there and right, otherwise from the bucket.
func (s *checksums) loadFlat(ctx context.Context, x *extent) (layout.Checksums, error) {
	sums, err := x.LoadChecksums(int(x.size), s.files.readFile)
	if err == nil {
		return sums, nil
	}
	name := s.files.name(x.SumsPath)
	file, err := s.fetchSums(ctx, x, path.Join(path.Dir(x.object), name), layout.HeaderBytes+4*x.count)
	if err != nil {
		return nil, err
	}
	if err := s.files.write(name, 0, file); err != nil && !isFull(err) {
		return nil, fmt.Errorf("mirror: %s: %w", name, err)
	}
	return file[layout.HeaderBytes:], nil
}

// fetchSums fetches a checksum file, again if it is wrong, up to three times.
func (s *checksums) fetchSums(ctx context.Context, x *extent, key string, size int64) ([]byte, error) {
	for try := 1; ; try++ {
		data, _, err := s.client.ReadAll(ctx, key, size)
		if err != nil {
			return nil, err
		}
		if err = x.CheckSumsFile(data); err == nil && int64(len(data)) != size {
			err = fmt.Errorf("%d bytes, and not the %d of %d checksums: %w", len(data), size, x.count, store.ErrCorrupt)
		}
		if err == nil {
			return data, nil
		}
		s.counts.wrong.Add(1)
		if try == tries {
			return nil, fmt.Errorf("mirror: %s: %w", s.client.Name(key), err)
		}
	}
}

// loadMetadata returns checksums that are part of an HDF5 file's metadata, which Open has fetched.
func (s *checksums) loadMetadata(_ context.Context, x *extent) (layout.Checksums, error) {
	sums, err := x.LoadChecksums(int(x.size), s.files.readFile)
	if err != nil {
		return nil, fmt.Errorf("mirror: %s: its checksums: %w", x.name, err)
	}
	return sums, nil
}
