package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/array"
	"github.com/penstock/penstock/cmd/internal/source/column"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// OpenHDF5 opens any HDF5 file: a dataset of this module with all that is known of it, of
// another file every dataset of numbers that has records, contiguous or chunked.
func OpenHDF5(ctx context.Context, path string, opts source.Options, selection []column.Selection) (source.Source, error) {
	f, err := source.OpenUntil(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, source.WithoutPath(err))
	}
	file, err := hdf5Metadata(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	if d, err := ownHDF5(path, file); d != nil || err != nil {
		f.Close()
		if err != nil {
			return nil, err
		}
		return newDataset(d, opts, selection)
	}
	pool := chunk.NewPool(0)
	columns, bad, err := hdf5Columns(ctx, f, file, pool, selection)
	if err != nil {
		pool.Close()
		f.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	s, err := array.New("hdf5", path, source.BaseName(path), columns, Closer(pool.Close), f)
	if noting, ok := s.(interface{ Note(hint string) }); ok && len(bad) > 0 && len(selection) == 0 {
		noting.Note(bad.Hint())
	}
	return s, err
}

func hdf5Metadata(f vfs.File) (*meta.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, source.WithoutPath(err)
	}
	return meta.Open(f, info.Size())
}

// ownHDF5 returns the dataset of this module that a file holds, nil if it holds none. A view
// of one is an error, which says where the dataset is.
func ownHDF5(path string, file *meta.File) (*store.Dataset, error) {
	d, err := store.ReadHDF5(path, file, store.OpenOptions{})
	if errors.Is(err, store.ErrView) {
		return nil, err
	}
	if err != nil || d.Manifest == nil {
		return nil, nil
	}
	return d, nil
}

// Closer is a function to call at the end.
type Closer func()

// Close implements io.Closer.
func (c Closer) Close() error { c(); return nil }

// hdf5Columns returns the datasets that are wanted, by default all that make a field, and
// those that make none. One that would make a field, but is not read, is an error then: it is what
// people would miss.
func hdf5Columns(ctx context.Context, f vfs.File, file *meta.File, pool *chunk.Pool, selection []column.Selection) (columns []array.Column, bad array.Rejections, err error) {
	var unread array.Rejections
	for _, d := range file.Datasets() {
		c, err := hdf5Column(ctx, f, d, pool)
		switch _, noField := d.Spec(); {
		case err == nil:
			columns = append(columns, c)
		case noField == nil:
			unread = append(unread, array.Rejection{Name: d.Path, Err: err})
		default:
			bad = append(bad, array.Rejection{Name: d.Path, Err: err})
		}
	}
	if err := errors.Join(bad.Selected(selection), unread.Selected(selection)); err != nil {
		return nil, nil, err
	}
	if len(selection) == 0 && len(unread) > 0 {
		return nil, nil, unread.All(columns)
	}
	if len(columns) == 0 && len(bad) > 0 {
		return nil, nil, bad.All(nil)
	}
	columns, err = array.Select(columns, selection)
	return columns, bad, err
}

// hdf5Column returns a dataset as a column.
func hdf5Column(ctx context.Context, f vfs.File, d *meta.Dataset, pool *chunk.Pool) (array.Column, error) {
	spec, err := d.Spec()
	if err != nil {
		return array.Column{}, err
	}
	origin := strings.Trim(d.Path, "/")
	c := array.Column{Field: source.NumberField(source.FieldName(origin), spec.DType, spec.Shape...), Count: d.Records()}
	c.Field.Origin = origin
	if c.Field.Spec.Validate() != nil {
		return array.Column{}, fmt.Errorf("shape %v has no records of numbers", spec.Shape)
	}
	r, err := chunk.NewReader(f, d, chunk.Options{Pool: pool})
	if err != nil {
		return array.Column{}, err
	}
	hdf5Attributes(&c.Field, d)
	c.Open = func() (array.Cursor, error) { return cursor(ctx, r, rowsPerRead(d), c.Count), nil }
	c.At = func(i int64, buf []byte) ([]byte, error) {
		buf = append(buf, make([]byte, r.RecordBytes())...)
		return buf, r.Records(ctx, buf, i, i+1)
	}
	return c, nil
}

// Cursor returns the first records of a reader, whole rows of chunks at a time.
func Cursor(ctx context.Context, r *chunk.Reader, count int64) array.Cursor {
	return cursor(ctx, r, r.ChunkRecords(), count)
}

func cursor(ctx context.Context, r *chunk.Reader, step, count int64) array.Cursor {
	return array.Fixed{Size: r.RecordBytes()}.Cursor(&recordReader{ctx: ctx, r: r, step: step}, count)
}

// hdf5Attributes takes over what this module's writer notes, as is usual: the layout of
// images and the names of classes.
func hdf5Attributes(f *source.Field, d *meta.Dataset) {
	if a, ok := d.Attrs.Get("layout"); ok {
		if text, ok := a.Value.Text(); ok && len(f.Shape) == 3 && (text == "NCHW" || text == "NHWC") {
			f.Layout = text[1:]
		}
	}
	if a, ok := d.Attrs.Get("class_names"); ok && len(f.Shape) == 0 {
		if names, ok := a.Value.Strings(); ok && f.DType == tensor.Int64 {
			f.Classes = names
		}
	}
}

// rowsPerRead returns how many records are in one row of chunks, 1 without chunks.
func rowsPerRead(d *meta.Dataset) int64 {
	if len(d.Layout.ChunkDims) > 0 {
		return max(1, d.Layout.ChunkDims[0])
	}
	return 1
}

// recordReader reads the records of a dataset as bytes, whole rows of chunks at a time
// where they are small enough, so that each chunk is inflated once.
type recordReader struct {
	ctx  context.Context
	r    *chunk.Reader
	step int64
	at   int64 // record
	rest []byte
}

// Read implements io.Reader.
func (r *recordReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	size := r.r.RecordBytes()
	if len(r.rest) > 0 {
		n := copy(p, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	left := r.r.Len() - r.at
	if left == 0 {
		return 0, io.EOF
	}
	if n := int64(len(p) / size); n >= min(r.step, left) {
		n = min(n, left)
		r.at += n
		return int(n) * size, r.r.Records(r.ctx, p[:int(n)*size], r.at-n, r.at)
	}
	const most = 32 << 20
	n := min(left, max(1, min(r.step, most/int64(size))))
	b := make([]byte, int(n)*size)
	err := r.r.Records(r.ctx, b, r.at, r.at+n)
	r.at, r.rest = r.at+n, b
	if err != nil {
		return 0, err
	}
	return r.Read(p)
}

// Close implements io.Closer.
func (r *recordReader) Close() error { return nil }
