package mirror

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/h5meta"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// hdf5Name is the file of a mirror of an HDF5 file.
const hdf5Name = "data.h5"

// bookPiece is how much of the books of an HDF5 file is fetched at once.
const bookPiece = 1 << 20

// planHDF5 looks whether an object is an HDF5 file.
func (d *Dataset) planHDF5(ctx context.Context, key string) (*plan, error) {
	o, err := d.client.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	p := &plan{file: hdf5Name, folder: folderName("hdf5", d.client.Bucket().String(), key, o.ETag, fmt.Sprint(o.Size, d.opts.Fields))}
	p.prepare = func(ctx context.Context, d *Dataset) (*store.Dataset, error) { return d.prepareHDF5(ctx, o) }
	return p, nil
}

// prepareHDF5 makes the file of the mirror and fetches its books: all that is not the payload
// of a dataset that can be mapped. What is packed is fetched as if it were books, all of it,
// before it is opened.
func (d *Dataset) prepareHDF5(ctx context.Context, o remote.Object) (*store.Dataset, error) {
	d.etag = o.ETag
	payloads, err := d.payloads(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := d.bookkeeping(ctx, o, payloads); err != nil {
		return nil, err
	}
	whole, err := d.locateHDF5()
	if err != nil {
		return nil, err
	}
	d.grid, err = newGrid(whole, func(string) (string, string) { return hdf5Name, o.Key })
	if err != nil {
		return nil, err
	}
	if err := d.openState(); err != nil {
		return nil, err
	}
	d.takeBooks(payloads)
	return whole, d.makeArrived()
}

// takeBooks notes that the blocks of small arrays came with the books.
func (d *Dataset) takeBooks(payloads []part) {
	for _, x := range d.grid.extents {
		from, to := x.Offset, x.Offset+x.Count*x.size
		x.books = !slices.ContainsFunc(payloads, func(p part) bool { return from < p.off+p.n && p.off < to })
		for b := int64(0); x.books && b < x.count; b++ {
			d.state.add(x.base + b)
		}
	}
}

// locateHDF5 finds the columns of the mirror's file.
func (d *Dataset) locateHDF5() (*store.Dataset, error) {
	file := filepath.Join(d.dir, hdf5Name)
	local, err := mmapds.Open(file)
	if err != nil && d.opts.Fields != nil {
		local, err = mmapds.OpenWith(file, mmapds.Options{Fields: d.opts.Fields})
	}
	if err != nil {
		return nil, err
	}
	return local.Files(), local.Close()
}

// payloads returns what the large arrays of an HDF5 file have, in order.
func (d *Dataset) payloads(ctx context.Context, o remote.Object) ([]part, error) {
	file, err := h5meta.Open(&readAhead{r: d.client.File(ctx, o), size: o.Size}, o.Size)
	if errors.Is(err, h5meta.ErrNotHDF5) {
		err = fmt.Errorf("neither a folder with a manifest nor an HDF5 file: %w", store.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	var list []part
	for data := range file.All() {
		n := data.Layout.Size
		if data.Mappable() != nil || n < bookPiece || isBooks(data.Path) {
			continue
		}
		if err := store.Inside(data.Layout.Offset, n, o.Size); err != nil {
			return nil, fmt.Errorf("dataset %q: %w", data.Path, err)
		}
		list = append(list, part{data.Layout.Offset, n})
	}
	slices.SortFunc(list, func(a, b part) int { return int(min(1, max(-1, a.off-b.off))) })
	return list, nil
}
