package mirror

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// planHDF5 returns the plan for an object that may be an HDF5 file, which prepare finds out. The
// folder's name has the ETag: an object that was replaced gets another mirror.
func (op *opener) planHDF5(ctx context.Context, key string) (*plan, error) {
	o, err := op.cache.client.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	p := &plan{file: hdf5Name, folder: folderName("hdf5", op.cache.client.Bucket().String(), key, o.ETag,
		fmt.Sprint(o.Size, op.cache.opts.Fields))}
	p.prepare = func(ctx context.Context) (*store.Dataset, error) { return op.prepareHDF5(ctx, o) }
	return p, nil
}

// prepareHDF5 makes the mirror's file and fetches its metadata, which is everything but the payload
// of large arrays.
func (op *opener) prepareHDF5(ctx context.Context, o remote.Object) (*store.Dataset, error) {
	op.cache.fetcher.version.etag = o.ETag
	c, err := op.bookkeeping(ctx, o)
	if err != nil {
		return nil, err
	}
	opened, err := layout.OpenHDF5(filepath.Join(op.cache.files.dir, hdf5Name), c.file, op.cache.opts.Fields,
		layout.Undone)
	if err != nil {
		return nil, err
	}
	whole := opened.(*store.Dataset)
	if op.cache.opts.Fields != nil {
		if whole, err = whole.Select(op.cache.opts.Fields); err != nil {
			return nil, err
		}
	}
	op.cache.index.grid, err = newGrid(whole, func(string) (string, string) { return hdf5Name, o.Key })
	if err == nil {
		err = op.cache.index.grid.addPacked(whole, c.chunks, o.Key)
	}
	if err == nil {
		err = op.cache.index.open()
	}
	if err != nil {
		return nil, err
	}
	op.cache.index.takeMetadata(c.plain)
	return whole, op.cache.sums.makeArrived(op.cache.index.grid)
}

// addPacked makes one extent of the chunks of all packed columns: chunks that are adjacent in the
// file then come in one request, whichever column they belong to.
func (g *grid) addPacked(d *store.Dataset, chunks map[string][]part, key string) (err error) {
	var all []part
	for _, c := range layout.Of(d).Columns {
		if c.Packed {
			all = append(all, chunks[c.Path()]...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	x := &extent{Extent: layout.Extent{Path: d.Path}, name: hdf5Name, object: key, wanted: true}
	if x.places, err = newPlaces(all); err != nil {
		return err
	}
	x.count, x.bytes = int64(len(x.places)), total(x.places)
	g.packed = x
	return g.number(x)
}

// Distrust implements mmapds.Pager: the chunk that err is about is fetched again when it is next
// needed.
func (d *cache) Distrust(err error) bool {
	block, ok := d.index.wrongBlock(err)
	if ok {
		d.distrust(block)
	}
	return ok
}

// distrust removes a packed block from the mirror. It may have been damaged on the way: its
// checksum is of the bytes that arrived, and vouches only for the disk.
func (d *cache) distrust(block int64) {
	d.counts.wrong.Add(1)
	d.memory.drop(d.index.grid.packed.base + block)
	if d.index.forget(block) {
		d.engine.unasked.Add(1)
	}
}
