package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// waitOther is how long another process may take to fetch a block, before it is fetched a
// second time.
const waitOther = 30 * time.Second

// fetch brings the blocks of a job that are not there.
func (d *cache) fetch(ctx context.Context, j *job) error {
	from, n := lockBlocks+j.x.base+j.from, j.to-j.from
	if !d.state.lock.try(from, n) {
		d.state.lock.wait(from, n, waitOther)
	}
	defer d.state.lock.free(from, n)
	for b := j.from; b < j.to; {
		there, err := d.there(ctx, j.x, b)
		if err != nil {
			return err
		}
		if there {
			d.counts.others.Add(1)
			b++
			continue
		}
		end := b + 1
		for end < j.to && !d.state.has(j.x.base+end) && j.x.spanBytes(b, end+1) <= largeBytes {
			end++
		}
		if err := d.fetchRun(ctx, j, b, end); err != nil {
			return err
		}
		b = end
	}
	return nil
}

// tries is how often blocks are fetched whose bytes are not what their checksums say: once is
// an accident on the way.
const tries = 3

// fetchRun fetches blocks [from, to) in one request, checks them and stores them.
func (d *cache) fetchRun(ctx context.Context, j *job, from, to int64) error {
	off, n := j.x.span(from, to)
	if n > largeBytes {
		return d.fetchLarge(ctx, j.x, from)
	}
	sums := make(chan error, 1)
	go func() { // beside the data: one round trip less
		_, err := d.sums(ctx, j.x)
		sums <- err
	}()
	buf := borrow(n)
	defer giveBack(buf)
	data := *buf
	for try := 1; ; try++ {
		err := d.client.ReadAt(ctx, d.object(j.x), off, data)
		if try == 1 {
			if sumsErr := <-sums; err == nil {
				err = sumsErr
			}
		}
		if err != nil {
			return d.explain(ctx, j.x, err)
		}
		bad := d.compare(j.x, from, to, data)
		if bad < 0 {
			break
		}
		d.counts.wrong.Add(1)
		if try == tries {
			return fmt.Errorf("mirror: %s: block %d (rows from %d) came %d times with another CRC32C than its checksum file says: %w",
				d.client.Name(j.x.object), bad, bad*j.x.per, tries, store.ErrCorrupt)
		}
	}
	d.counts.fetched.Add(n)
	return d.put(j, from, to, data)
}

// compare returns the first of blocks [from, to) that is not what its checksum says, or -1.
func (d *cache) compare(x *extent, from, to int64, data []byte) int64 {
	sums := x.sums.Load()
	if sums == nil {
		return -1
	}
	for b := from; b < to; b++ {
		off, n := x.within(from, b)
		if sums.Compare(b, store.CRC32C(data[off:off+n])) != nil {
			return b
		}
	}
	return -1
}

// object names the object that an extent is a copy of, in the version that was opened.
func (d *cache) object(x *extent) remote.Object {
	return remote.Object{Key: x.object, ETag: d.version.etag}
}

// explain says of an error of the store what is wrong with the object, where that can be seen.
func (d *cache) explain(ctx context.Context, x *extent, err error) error {
	if ctx.Err() != nil || errors.Is(err, remote.ErrNotFound) || errors.Is(err, remote.ErrPermission) || errors.Is(err, remote.ErrUnavailable) && d.closed() {
		return err
	}
	o, statErr := d.client.Stat(ctx, x.object)
	end := x.end()
	if statErr == nil && o.Size < end {
		return fmt.Errorf("mirror: %s: it has %d bytes, but the manifest says at least %d: %w", d.client.Name(x.object), o.Size, end, store.ErrCorrupt)
	}
	return err
}

// put stores blocks that are right: in the mirror, or where that has no room, in memory.
func (d *cache) put(j *job, from, to int64, data []byte) error {
	x := j.x
	mine := []blocks{{x, from, to}}
	d.claim(mine)
	defer d.disclaim(mine)
	err := d.store(x, from, data)
	if err == nil {
		err = d.noteArrived(x, from, to, data)
	}
	switch {
	case isNoRoom(err):
		d.hold(j, from, to, data, err)
		return nil
	case err != nil:
		return fmt.Errorf("mirror: %s: %w", x.name, err)
	}
	for b := from; b < to; b++ {
		d.state.add(x.base + b)
		d.state.touch(x.segmentOf(b))
		d.learn(x, b)
	}
	return nil
}

// store writes blocks from one on to their place. Nobody reads them before their bits are set.
func (d *cache) store(x *extent, from int64, data []byte) error {
	off := x.offset(from)
	if err := d.evictor.room(d, pages(off, int64(len(data)))); err != nil {
		return err
	}
	err := d.write(x.name, off, data)
	if err != nil && isFull(err) && d.evictor.free(d, int64(len(data))) {
		err = d.write(x.name, off, data)
	}
	return err
}

func (d *cache) write(name string, off int64, data []byte) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(data, off)
	return err
}

// hold keeps blocks in memory.
func (d *cache) hold(j *job, from, to int64, data []byte, why error) {
	if j.held == nil {
		j.held = make(map[int64][]byte)
	}
	for b := from; b < to; b++ {
		off, n := j.x.within(from, b)
		own := slices.Clone(data[off : off+n])
		j.held[j.x.base+b] = own
		d.memory.put(j.x.base+b, own, fullness(d.opts.CacheDir, why))
		d.counts.held.Add(1)
	}
}

// largeBytes is what one request brings at most; a record of more comes in several.
const largeBytes = 64 << 20

// fetchLarge fetches one large block piece by piece, so that memory does not grow with the
// size that a manifest says.
func (d *cache) fetchLarge(ctx context.Context, x *extent, block int64) error {
	off, n := x.span(block, block+1)
	if o, err := d.client.Stat(ctx, x.object); err != nil {
		return err
	} else if err := store.Inside(off, n, o.Size); err != nil {
		return fmt.Errorf("mirror: %s: %w", d.client.Name(x.object), err)
	}
	sums, err := d.sums(ctx, x)
	if err != nil {
		return err
	}
	if err := d.evictor.room(d, n); err != nil {
		return err
	}
	mine := []blocks{{x, block, block + 1}}
	d.claim(mine)
	defer d.disclaim(mine)
	crc := uint32(0)
	buf := make([]byte, min(n, pieceBytes))
	for at := int64(0); at < n; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), n-at)]
		if err := d.client.ReadAt(ctx, d.object(x), off+at, buf); err != nil {
			return err
		}
		crc = kernel.CRC32C(crc, buf)
		if err := d.write(x.name, off+at, buf); err != nil {
			return fmt.Errorf("mirror: %s: %w", x.name, err)
		}
	}
	if sums != nil && sums.Compare(block, crc) != nil {
		return fmt.Errorf("mirror: %s: record %d is not what its checksum says: %w", d.client.Name(x.object), block, store.ErrCorrupt)
	}
	if err := d.writeArrived(x, block, crc); err != nil {
		return fmt.Errorf("mirror: %s: %w", arrivedName, err)
	}
	d.counts.fetched.Add(n)
	d.state.add(x.base + block)
	d.state.touch(x.segmentOf(block))
	d.learn(x, block)
	return nil
}
