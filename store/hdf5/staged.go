//go:build cgo

package hdf5

import (
	"errors"
	"fmt"
	"os"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Where the books of a dataset are in the file.
const (
	booksGroup   = "/penstock"
	crcGroup     = booksGroup + "/crc"
	manifestPath = booksGroup + "/manifest"
)

// Where objects start in the file: payloads at pages, so that they can be mapped; the rest
// where its own type wants to be.
const (
	pageAlign  = 4096
	smallAlign = 8
)

// slack is what is reserved beyond the structure for the attributes and manifest that
// Commit adds. Commit reserves again, when it knows how much they are.
const slack = 256 << 10

// staged is an HDF5 file under construction: its structure is complete and libhdf5 has let
// go of it, so records can be written at the places that it gave them.
type staged struct {
	path   string
	file   *os.File
	fields []fieldColumn
	size   int64 // bytes of the structure, payload included
}

// The datasets of field f in a file of n records.
func payload(f store.Field, n int64) dataset {
	dims := []int64{n}
	for _, d := range f.Shape {
		dims = append(dims, int64(d))
	}
	return dataset{path: "/" + f.Name, elem: element{dtype: f.DType}, dims: dims, late: true}
}

func checksums(f store.Field, n int64) dataset {
	return dataset{
		path: crcGroup + "/" + f.Name, elem: element{dtype: tensor.Uint32},
		dims: []int64{store.Blocks(n, f.RecordBytes())},
	}
}

// newStaged makes the file path with room for n records and reserves the disk space.
func newStaged(path string, schema store.Schema, n int64) (*staged, error) {
	s := &staged{path: path}
	for _, f := range schema.Fields {
		s.fields = append(s.fields, newFieldColumn(f))
	}
	if err := s.describe(schema, n); err != nil {
		return nil, err
	}
	if err := s.allocate(schema, n); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, pathless(err)
	}
	s.file = file
	for i := range s.fields {
		s.fields[i].values.file, s.fields[i].sums.file = file, file
	}
	if err := s.reserve(slack); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// describe creates the objects. The payloads get no place yet: otherwise their headers,
// too, would start at pages.
func (s *staged) describe(schema store.Schema, n int64) error {
	return session(s.path, true, smallAlign, func(f file) error {
		for _, path := range []string{booksGroup, crcGroup} {
			if err := createGroup(f, path); err != nil {
				return err
			}
		}
		for _, field := range schema.Fields {
			if err := payload(field, n).create(f, nil); err != nil {
				return err
			}
			if err := checksums(field, n).create(f, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// allocate gives the payloads their places and notes those of all columns.
func (s *staged) allocate(schema store.Schema, n int64) error {
	return session(s.path, false, pageAlign, func(f file) error {
		for i, field := range schema.Fields {
			p := payload(field, n)
			if err := p.allocate(f); err != nil {
				return err
			}
			err := errors.Join(s.fields[i].values.place(f, p), s.fields[i].sums.place(f, checksums(field, n)))
			if err != nil {
				return err
			}
			if at := s.fields[i].values.start; at%pageAlign != 0 {
				return fmt.Errorf("%s: libhdf5 put it at %#x, which is no multiple of %d", p.path, at, pageAlign)
			}
		}
		return nil
	})
}

// place learns where a dataset lies.
func (c *column) place(f file, d dataset) (err error) {
	if c.room, err = d.bytes(); err != nil {
		return err
	}
	c.start, err = d.offset(f)
	return err
}

// reserve takes disk space for the whole file and extra bytes after it, so that a full disk
// is found out now and not by libhdf5. Where the system cannot reserve, nothing happens.
func (s *staged) reserve(extra int64) error {
	info, err := s.file.Stat()
	if err != nil {
		return pathless(err)
	}
	s.size = info.Size()
	if err := reserve(s.file, s.size, extra); err != nil {
		return fmt.Errorf("reserve the %d bytes that the file needs: %w", s.size+extra, err)
	}
	return nil
}

// append adds a record to every field.
func (s *staged) append(r *store.Record, sums []uint32) error {
	for i := range s.fields {
		if err := s.fields[i].append(r.Values[i], sums[i]); err != nil {
			return err
		}
	}
	return nil
}

// finish writes what is still in memory.
func (s *staged) finish() error {
	for i := range s.fields {
		if err := s.fields[i].finish(); err != nil {
			return err
		}
	}
	return nil
}

// copyFrom takes over the records and checksums of another file, which must be finished.
func (s *staged) copyFrom(from *staged) error {
	for i := range s.fields {
		if err := s.fields[i].values.copyFrom(&from.fields[i].values); err != nil {
			return err
		}
		if err := s.fields[i].sums.copyFrom(&from.fields[i].sums); err != nil {
			return err
		}
	}
	return nil
}

// close lets go of the file, which the stage removes.
func (s *staged) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}
