package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/remote"
)

// remoteReader is an object as an io.ReaderAt, for reading the metadata of an HDF5 file. What it
// fetches is written to the mirror's file, and later reads come from there.
type remoteReader struct {
	d    *cache
	ctx  context.Context
	o    remote.Object
	file *os.File

	mu   sync.Mutex
	have []part // fetched so far; tidy
}

// How much is fetched at a time.
const (
	aheadPiece    = 256 << 10 // for a read that was not announced: metadata lies close together
	metadataPiece = 1 << 20   // in one request, at most
	bookFlight    = 64 << 20  // in all requests under way, about
)

// ReadAt implements io.ReaderAt.
func (f *remoteReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= f.o.Size {
		return 0, io.EOF
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	want := part{off, min(int64(len(p)), f.o.Size-off)}
	if len(minus([]part{want}, f.have)) > 0 {
		from := off / aheadPiece * aheadPiece
		to := min(f.o.Size, (want.end()+aheadPiece-1)/aheadPiece*aheadPiece)
		if err := f.fetchLocked([]part{{from, to - from}}); err != nil {
			return 0, err
		}
	}
	return f.file.ReadAt(p, off)
}

// Announce fetches extents that will be read, in parallel. An error is dropped: it comes again at
// the read.
func (f *remoteReader) Announce(parts []meta.Extent) {
	list := make([]part, len(parts))
	for i, e := range parts {
		list[i] = part{e.Offset, e.Size}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.fetchLocked(tidy(list, 0))
}

// fetch fetches what is missing of tidy parts, in parallel.
func (f *remoteReader) fetch(list []part) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fetchLocked(list)
}

// fetchLocked is fetch for callers that hold mu.
func (f *remoteReader) fetchLocked(list []part) error {
	list = pieces(tidy(minus(list, f.have), gapBytes), metadataPiece)
	workers := min(maxInFlight, len(list), int(int64(len(list))*bookFlight/max(1, total(list)))+1)
	if err := together(f.ctx, workers, slices.Values(list), f.fetchPart); err != nil {
		return err
	}
	f.have = tidy(append(f.have, list...), 0)
	return nil
}

// together calls do for every element of a sequence, by several workers, until one call fails.
func together[T any](ctx context.Context, workers int, all iter.Seq[T], do func(context.Context, T) error) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for x := range all {
		if g.Go(func() error { return do(within, x) }); within.Err() != nil {
			break
		}
	}
	return cmp.Or(g.Wait(), context.Cause(ctx))
}

// fetchPart fetches a part of an HDF5 file's metadata into the file of the mirror. Room is made before the write, so
// that the cache keeps its limit also while it fills.
func (f *remoteReader) fetchPart(ctx context.Context, p part) error {
	buf := borrow(p.n)
	defer giveBack(buf)
	if err := f.d.client.ReadAt(ctx, f.o, p.off, *buf); err != nil {
		return err
	}
	err := f.d.evictor.room(p.n)
	if err == nil {
		_, err = f.file.WriteAt(*buf, p.off)
	}
	if isNoRoom(err) {
		err = fmt.Errorf("%s: %w; an HDF5 file needs room for all its metadata", f.d.opts.CacheDir, err)
	}
	return err
}

// isNoRoom reports whether something found no room: by the limit of the cache, or on the disk.
func isNoRoom(err error) bool { return err != nil && (isFull(err) || errors.Is(err, errNoRoom)) }
