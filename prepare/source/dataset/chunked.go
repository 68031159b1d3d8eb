package dataset

import (
	"context"
	"errors"
	"io"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// chunkReaders are the readers of compressed arrays, by array name.
type chunkReaders map[string]*chunk.Reader

// openChunked opens the compressed arrays of a dataset. The closers must be closed in order after use: the pool of
// goroutines that decompress, then the file. Arrays that are stored as they are have no reader.
func openChunked(root *vfs.Root, d *store.Dataset) (chunkReaders, []io.Closer, error) {
	p := make(chunkReaders)
	for _, c := range layout.Of(d).Columns {
		if c.Packed {
			p[c.Name] = nil
		}
	}
	if len(p) == 0 {
		return nil, nil, nil
	}
	pool := chunk.NewPool(0)
	closers := []io.Closer{Closer(pool.Close)}
	var f vfs.File // of HDF5; arrays of Zarr have files of their own
	if d.Format != "zarr" {
		var err error
		if f, err = root.Open(d.Path); err != nil {
			return nil, nil, errors.Join(source.WithoutPath(err), closeEach(closers))
		}
		closers = append(closers, f)
	}
	if err := p.open(d, f, pool); err != nil {
		return nil, nil, errors.Join(err, closeEach(closers))
	}
	return p, closers, nil
}

func closeEach(closers []io.Closer) (err error) {
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// open opens a reader for each compressed array. f is the HDF5 file; nil for Zarr.
func (p chunkReaders) open(d *store.Dataset, f vfs.File, pool *chunk.Pool) (err error) {
	l := layout.Of(d)
	for i := range l.Columns {
		c := &l.Columns[i]
		if !c.Packed {
			continue
		}
		if p[c.Name], err = l.OpenColumn(c, f, nil, chunk.Options{Pool: pool}); err != nil {
			return err
		}
	}
	return nil
}

// readRows fills b with rows of an extent, from its row number row on. r decompresses them; if r is nil, they are
// read from the file of the extent as they are.
func readRows(r *chunk.Reader, files *openFiles, e layout.Extent, row int64, size int, b []byte) error {
	if r == nil {
		return files.readAt(e.Path, b, e.Offset+row*int64(size))
	}
	first := e.Row + row
	return r.Records(context.Background(), b, first, first+int64(len(b)/size))
}
