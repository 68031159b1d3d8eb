package mirror

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// waitOther is how long another process may take to fetch a block before this process fetches it, too: that process may
// be stopped or hang.
const waitOther = 30 * time.Second

// fetcher brings blocks of one version of a dataset from its bucket into the mirror.
type fetcher struct {
	c       *cache
	client  *requests.Client
	version version
}

// version distinguishes the dataset that was opened from a dataset that has replaced it.
type version struct {
	etag string // for an HDF5 file: no other version of the object is read
	seal seal   // for a flat dataset
}

// fetch fetches the blocks of a job that are not present. The lock on the blocks keeps other processes of this machine
// from fetching them at the same time.
func (f *fetcher) fetch(ctx context.Context, j *job) error {
	from, n := lockBlocks+j.x.base+j.from, j.to-j.from
	if !f.c.index.state.lock.try(from, n) {
		f.c.index.state.lock.wait(from, n, waitOther)
	}
	defer f.c.index.state.lock.free(from, n)
	for b := j.from; b < j.to; {
		there, err := f.c.index.there(ctx, j.x, b)
		if err != nil {
			return err
		}
		if there {
			f.c.counts.others.Add(1)
			b++
			continue
		}
		end := b + 1
		for end < j.to && !f.c.index.state.has(j.x.base+end) && j.x.spanBytes(b, end+1) <= largeBytes {
			end++
		}
		if err := f.fetchRun(ctx, j, b, end); err != nil {
			return err
		}
		b = end
	}
	return nil
}

// tries is how often blocks are fetched that differ from their checksums. A single difference may be an accident on the
// way; after several differences, the object itself is damaged.
const tries = 3

// fetchRun fetches blocks [from, to) in one request, compares them with their checksums and stores them.
func (f *fetcher) fetchRun(ctx context.Context, j *job, from, to int64) error {
	off, n := j.x.span(from, to)
	if n > largeBytes {
		return f.fetchLarge(ctx, j.x, from)
	}
	sums := make(chan error, 1)
	go func() { // at the same time as the data, which saves a round trip
		_, err := f.c.sums.load(ctx, j.x)
		sums <- err
	}()
	buf := borrow(n)
	defer giveBack(buf)
	data := *buf
	for try := 1; ; try++ {
		err := f.client.ReadAt(ctx, f.object(j.x), off, data)
		if try == 1 {
			if sumsErr := <-sums; err == nil {
				err = sumsErr
			}
		}
		if err != nil {
			return f.explain(ctx, j.x, err)
		}
		bad := f.compare(j.x, from, to, data)
		if bad < 0 {
			break
		}
		f.c.counts.wrong.Add(1)
		if try == tries {
			return fmt.Errorf("mirror: %s: block %d (rows from %d) came %d times with another CRC32C than its checksum "+
				"file says: %w",
				f.client.Name(j.x.object), bad, bad*j.x.per, tries, store.ErrCorrupt)
		}
	}
	f.c.counts.fetched.Add(n)
	return f.put(j, from, to, data)
}

// compare returns the first of blocks [from, to) that differs from its checksum, or -1.
func (f *fetcher) compare(x *extent, from, to int64, data []byte) int64 {
	sums := x.sums.Load()
	if sums == nil {
		return -1
	}
	for b := from; b < to; b++ {
		off, n := x.within(from, b)
		if sums.Compare(b, layout.CRC32C(data[off:off+n])) != nil {
			return b
		}
	}
	return -1
}

// object returns the object that an extent is a copy of, in the version that was opened.
func (f *fetcher) object(x *extent) remote.Object {
	return remote.Object{Key: x.object, ETag: f.version.etag}
}

// explain returns ErrCorrupt with both sizes in place of err if the object is shorter than the manifest says.
func (f *fetcher) explain(ctx context.Context, x *extent, err error) error {
	if ctx.Err() != nil || errors.Is(err, remote.ErrNotFound) || errors.Is(err, remote.ErrPermission) ||
		errors.Is(err, remote.ErrUnavailable) && f.c.closed() {
		return err
	}
	o, statErr := f.client.Stat(ctx, x.object)
	end := x.end()
	if statErr == nil && o.Size < end {
		return fmt.Errorf("mirror: %s: it has %d bytes, but the manifest says at least %d: %w", f.client.Name(x.object),
			o.Size, end, store.ErrCorrupt)
	}
	return err
}

// put stores blocks that are correct: in the mirror, or in memory if the mirror has no room. The arrival checksum is
// written before the block is marked as present: after a crash, a block that is marked but has no checksum could not be
// checked.
func (f *fetcher) put(j *job, from, to int64, data []byte) error {
	x := j.x
	mine := []blocks{{x, from, to}}
	f.c.segments.claim(mine)
	defer f.c.segments.disclaim(mine)
	err := f.store(x, from, data)
	if err == nil {
		err = f.c.sums.noteArrived(x, from, to, data)
	}
	switch {
	case isNoRoom(err):
		f.hold(j, from, to, data, err)
		return nil
	case err != nil:
		return fmt.Errorf("mirror: %s: %w", x.name, err)
	}
	for b := from; b < to; b++ {
		f.c.index.state.add(x.base + b)
		f.c.index.state.touch(x.segmentOf(b))
		f.c.index.learn(x, b)
	}
	return nil
}

// store writes blocks to their place, from block from on. No reader reads them before their bits are set.
func (f *fetcher) store(x *extent, from int64, data []byte) error {
	off := x.offset(from)
	if err := f.c.evictor.room(pages(off, int64(len(data)))); err != nil {
		return err
	}
	err := f.c.files.write(x.name, off, data)
	if err != nil && isFull(err) && f.c.evictor.free(int64(len(data))) {
		err = f.c.files.write(x.name, off, data)
	}
	return err
}

// hold keeps blocks in memory, for which the mirror has no room.
func (f *fetcher) hold(j *job, from, to int64, data []byte, why error) {
	if j.held == nil {
		j.held = make(map[int64][]byte)
	}
	for b := from; b < to; b++ {
		off, n := j.x.within(from, b)
		own := slices.Clone(data[off : off+n])
		j.held[j.x.base+b] = own
		f.c.memory.put(j.x.base+b, own, fullness(f.c.opts.CacheDir, why))
		f.c.counts.held.Add(1)
	}
}

// largeBytes limits one request; a larger record takes several.
const largeBytes = 64 << 20

// fetchLarge fetches one large block piece by piece. Memory must not grow with the size that a manifest claims, so the
// size is compared with the object first.
func (f *fetcher) fetchLarge(ctx context.Context, x *extent, block int64) error {
	off, n := x.span(block, block+1)
	if o, err := f.client.Stat(ctx, x.object); err != nil {
		return err
	} else if err := layout.Inside(off, n, o.Size); err != nil {
		return fmt.Errorf("mirror: %s: %w", f.client.Name(x.object), err)
	}
	sums, err := f.c.sums.load(ctx, x)
	if err != nil {
		return err
	}
	if err := f.c.evictor.room(n); err != nil {
		return err
	}
	mine := []blocks{{x, block, block + 1}}
	f.c.segments.claim(mine)
	defer f.c.segments.disclaim(mine)
	crc := uint32(0)
	buf := make([]byte, min(n, pieceBytes))
	for at := int64(0); at < n; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), n-at)]
		if err := f.client.ReadAt(ctx, f.object(x), off+at, buf); err != nil {
			return err
		}
		crc = kernel.CRC32C(crc, buf)
		if err := f.c.files.write(x.name, off+at, buf); err != nil {
			return fmt.Errorf("mirror: %s: %w", x.name, err)
		}
	}
	if sums != nil && sums.Compare(block, crc) != nil {
		return fmt.Errorf("mirror: %s: record %d is not what its checksum says: %w", f.client.Name(x.object), block,
			store.ErrCorrupt)
	}
	if err := f.c.sums.writeArrived(x, block, crc); err != nil {
		return fmt.Errorf("mirror: %s: %w", arrivedName, err)
	}
	f.c.counts.fetched.Add(n)
	f.c.index.state.add(x.base + block)
	f.c.index.state.touch(x.segmentOf(block))
	f.c.index.learn(x, block)
	return nil
}

// seal distinguishes the manifest that was opened from a manifest that has replaced it under the same key.
type seal struct {
	keys []string // keys of the newest manifest and of the generation; nil for HDF5, whose requests name a version
	crc  uint32
}

// newSeal returns the seal of a dataset: the checksum of its manifest, and the keys at which the manifest may be. The
// newest generation's manifest is in the folder of the dataset, under the name newest, and every generation's manifest
// has a name of its own.
func newSeal(key, newest string, m *store.Manifest, text []byte) seal {
	return seal{[]string{path.Join(key, newest), path.Join(key, layout.GenerationName(m.Generation))}, layout.CRC32C(text)}
}

// ifReplaced replaces the error of a wrong or missing block if the dataset was replaced since it was opened: its
// manifest differs by now, or is missing while a new dataset is being sent. A later generation does not count,
// since it leaves the files of earlier generations in place.
func (f *fetcher) ifReplaced(ctx context.Context, err error) error {
	if f.version.seal.keys == nil || !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, remote.ErrNotFound) {
		return err
	}
	for _, key := range f.version.seal.keys {
		data, _, readErr := f.client.ReadAll(ctx, key, maxManifest)
		if !errors.Is(readErr, remote.ErrNotFound) && (readErr != nil || layout.CRC32C(data) == f.version.seal.crc) {
			return err
		}
	}
	return fmt.Errorf("mirror: %s: %w: its manifest is another one than when it was opened, or its generation was "+
		"pruned; open it again", f.c.name, remote.ErrChanged)
}
