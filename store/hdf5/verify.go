package hdf5

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/store"
)

// verify reads the structure of the finished file once more, with the parser that readers use, and compares it with
// the structure that was meant to be written.
func (s *staged) verify(m *store.Manifest) error {
	err := s.compare(m)
	if err != nil {
		return fmt.Errorf("the file is not as it should be: %w", err)
	}
	return nil
}

// compare opens the finished file like a reader, by package meta and not by the writer's own tables, and compares
// everything that it finds with the contents that were written. libhdf5 can fail silently when a disk is full at the
// wrong moment.
func (s *staged) compare(m *store.Manifest) error {
	info, err := s.file.Stat()
	if err != nil {
		return pathless(err)
	}
	f, err := meta.Open(s.file, info.Size())
	if err != nil {
		return err
	}
	for i := range s.arrays {
		a := &s.arrays[i]
		values := a.values.check
		if a.object.Chunked != nil {
			values = a.checkChunks
		}
		if err := errors.Join(values(f, a.object), a.sums.check(f, &s.objects[2*i+1])); err != nil {
			return err
		}
	}
	a, ok := f.Root.Attrs.Get("complete")
	if !ok {
		return errors.New("it is not marked complete")
	}
	if n, ok := a.Value.Int(); !ok || n != 1 {
		return errors.New("it is not marked complete")
	}
	return sameManifest(f, m)
}

// check verifies that a dataset has the type and shape that it was created with, is at its place, and is completely
// written.
func (c *column) check(f *meta.File, want *encode.Object) error {
	d, err := f.Dataset(want.Path)
	if err != nil {
		return err
	}
	if err := d.Mappable(); err != nil && c.room > 0 {
		return fmt.Errorf("%s: %w", want.Path, err)
	}
	if err := same(d, want); err != nil {
		return err
	}
	if c.room > 0 && d.Layout.Offset != c.start || d.Layout.Size != c.done || c.done != c.room {
		return fmt.Errorf("%s is %d bytes at %#x, but %d of %d were written at %#x",
			want.Path, d.Layout.Size, d.Layout.Offset, c.done, c.room, c.start)
	}
	return nil
}

// same compares the type and dimensions of a dataset with the type and dimensions that the writer asked for.
func same(is *meta.Dataset, want *encode.Object) error {
	if is.Type.DType().Descr() != want.Element.DType.Descr() || !slices.Equal(is.Dims, want.Dims) {
		return fmt.Errorf("%s is %v %v, not %v %v", want.Path, is.Type, is.Dims, want.Element.DType, want.Dims)
	}
	return nil
}

// checkChunks verifies that a compressed dataset has the type and shape that it was created with, and all of its
// chunks.
func (a *array) checkChunks(f *meta.File, want *encode.Object) error {
	d, err := f.Dataset(want.Path)
	if err != nil {
		return err
	}
	if err := same(d, want); err != nil {
		return err
	}
	chunk := append([]int64{int64(a.object.Chunked.Records)}, want.Dims[1:]...)
	if !slices.Equal(d.Layout.ChunkDims, chunk) || !a.object.Chunked.Made(d.Filters) {
		return fmt.Errorf("%s has chunks of %v through %v, not of %v through %v", want.Path, d.Layout.ChunkDims, d.Filters,
			chunk, a.object.Chunked.Filters())
	}
	table, err := d.Chunks()
	if err != nil {
		return fmt.Errorf("%s: %w", want.Path, err)
	}
	stored, rows := int64(0), int64(0)
	for _, c := range table.Chunks {
		stored, rows = stored+c.Size, rows+int64(a.object.Chunked.Records)
	}
	if stored != a.stored || rows < a.meta.Rows || rows-int64(a.object.Chunked.Records) >= a.meta.Rows {
		return fmt.Errorf("%s has %d chunks of %d bytes for %d rows, but %d bytes were written", want.Path, len(table.Chunks),
			stored, a.meta.Rows, a.stored)
	}
	return nil
}

func sameManifest(f *meta.File, m *store.Manifest) error {
	want, err := m.Encode()
	if err != nil {
		return err
	}
	d, err := f.Dataset(manifestPath)
	if err != nil {
		return err
	}
	v, err := d.Value(int64(len(want)))
	if err != nil {
		return fmt.Errorf("%s: %w", manifestPath, err)
	}
	if got, ok := v.Text(); !ok || got != string(want) {
		return fmt.Errorf("%s is not what was written", manifestPath)
	}
	return nil
}
