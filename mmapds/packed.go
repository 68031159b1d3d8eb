package mmapds

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/h5chunk"
	"github.com/penstock/penstock/internal/h5meta"
	"github.com/penstock/penstock/internal/mmap"
	"github.com/penstock/penstock/store"
)

// packed is a column of an HDF5 file that is not stored as it is.
type packed struct {
	field, path string
	file        []byte // all of it, mapped
	warm        pageSet
	r           *h5chunk.Reader
}

// openPacked reads the table of chunks of a column.
func (d *Dataset) openPacked(c *column, meta *store.Column, shared map[string]*mmap.Mapping) error {
	m, err := d.mapShared(d.files.Path, shared)
	if err != nil {
		return err
	}
	if d.pool == nil {
		d.pool = h5chunk.NewPool(0)
	}
	*c = newColumn(meta)
	p := &packed{field: meta.Name, path: d.files.Path, file: m.Bytes(), warm: newPageSet(len(m.Bytes()))}
	c.packed = p
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = p.open(f, meta, h5chunk.Options{Pool: d.pool, Warm: p.populate})
	if errors.Is(err, h5meta.ErrUnsupported) {
		err = fmt.Errorf("%w; rewrite it: h5repack -f NONE -l CONTI OLD.h5 NEW.h5", err)
	}
	return mark(err)
}

// open finds the column by way of f, which is only needed for that.
func (p *packed) open(f *os.File, meta *store.Column, opts h5chunk.Options) error {
	file, err := h5meta.Open(f, int64(len(p.file)))
	if err != nil {
		return err
	}
	data, err := file.Dataset(meta.Path())
	if err != nil {
		return err
	}
	if p.r, err = h5chunk.NewMapped(p.file, data, opts); err != nil {
		return err
	}
	if p.r.Len() != meta.Rows || p.r.RecordBytes() != meta.Spec.RecordBytes() {
		return fmt.Errorf("%d records of %d bytes, there were %d of %d: the file has changed", p.r.Len(), p.r.RecordBytes(), meta.Rows, meta.Spec.RecordBytes())
	}
	return nil
}

// populate brings bytes of the file in, once.
func (p *packed) populate(offset, size int64) error {
	from, to := int(offset), int(offset+size)
	if size == 0 || p.warm.has(from, to) {
		return nil
	}
	if err := mmap.Populate(p.file[from:to]); err != nil && !errors.Is(err, mmap.ErrUnsupported) {
		return fmt.Errorf("was it truncated? %w", errors.Join(err, h5meta.ErrCorrupt))
	}
	p.warm.add(from, to)
	return nil
}

// prefetch starts to read what records [a, b) are made from.
func (p *packed) prefetch(a, b int) {
	p.r.Stored(int64(a), int64(b), func(offset, size int64) {
		if p.has(offset, size) && !p.warm.has(int(offset), int(offset+size)) {
			mmap.WillNeed(p.file[offset : offset+size])
		}
	})
}

// has reports whether bytes lie in the mapping; size 0 has nothing to read.
func (p *packed) has(offset, size int64) bool {
	return size > 0 && store.Inside(offset, size, int64(len(p.file))) == nil
}

// warmRows waits for what records [a, b) are made from.
func (p *packed) warmRows(a, b int) (err error) {
	p.r.Stored(int64(a), int64(b), func(offset, size int64) {
		if err == nil && p.has(offset, size) {
			err = p.populate(offset, size)
		}
	})
	return p.wrap(err)
}

// run makes records [a, b), which exist.
func (p *packed) run(dst []byte, a, b int) error {
	return p.wrap(p.r.Records(context.Background(), dst, int64(a), int64(b)))
}

func (p *packed) gather(ctx context.Context, indices []int, dst []byte) error {
	for _, i := range indices {
		if err := checkRange(p.field, i, i+1, int(p.r.Len())); err != nil {
			return err
		}
	}
	return p.wrap(p.r.Gather(ctx, dst, indices))
}

// wrap names field and file.
func (p *packed) wrap(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("mmapds: field %q: %s: %w", p.field, p.path, mark(err))
}

// mark gives errors of package h5meta the marks that callers look for.
func mark(err error) error {
	switch {
	case errors.Is(err, h5meta.ErrCorrupt):
		return &marked{err, store.ErrCorrupt}
	case errors.Is(err, h5meta.ErrUnsupported):
		return &marked{err, store.ErrUnsupported}
	}
	return err
}

// marked is an error that is a sentinel, too, without saying it twice.
type marked struct {
	error
	mark error
}

// Unwrap returns both.
func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }
