//go:build cgo

package hdf5

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Where the books of a dataset are in the file.
const (
	booksGroup   = "/penstock"
	crcGroup     = booksGroup + "/crc"
	manifestPath = store.HDF5Manifest
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
	arrays []array
	size   int64 // bytes of the structure, payload included
}

// The datasets of a column.
func payload(c store.Column) dataset {
	dims := []int64{c.Rows}
	for _, d := range c.Spec.Shape {
		dims = append(dims, int64(d))
	}
	return dataset{path: c.Path(), elem: element{dtype: c.Spec.DType}, dims: dims, late: true}
}

func checksums(c store.Column) dataset {
	return dataset{
		path: c.SumsPath(), elem: element{dtype: tensor.Uint32},
		dims: []int64{store.Blocks(c.Rows, c.Spec.RecordBytes())},
	}
}

// fixedColumns returns the columns of n records that have one length.
func fixedColumns(schema store.Schema, n int64) []store.Column {
	columns := schema.Columns()
	for k := range columns {
		columns[k].Rows = n
	}
	return columns
}

// newStaged makes the file path with room for the rows of the columns and reserves the disk
// space. Column k is compressed as recipes[k] says, if there are recipes and that is not nil;
// what room it needs is seen then.
func newStaged(path string, columns []store.Column, recipes []*encode.Recipe) (*staged, error) {
	s := &staged{path: path}
	for k, c := range columns {
		var recipe *encode.Recipe
		if recipes != nil {
			recipe = recipes[k]
		}
		s.arrays = append(s.arrays, newArray(c, recipe))
	}
	if err := s.describe(); err != nil {
		return nil, err
	}
	if err := s.allocate(); err != nil {
		return nil, err
	}
	if err := s.find(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.reserve(slack); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens the file to write records.
func (s *staged) open() error {
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return pathless(err)
	}
	s.file = file
	for i := range s.arrays {
		s.arrays[i].values.file, s.arrays[i].sums.file = file, file
	}
	return nil
}

// describe creates the objects. The payloads get no place yet: otherwise their headers,
// too, would start at pages.
func (s *staged) describe() error {
	return session(s.path, creating, smallAlign, func(f file) error {
		for _, group := range []string{booksGroup, crcGroup} {
			if err := createGroup(f, group); err != nil {
				return err
			}
		}
		for _, a := range s.arrays {
			if a.meta.Part == store.Values {
				if err := createGroup(f, path.Dir(a.meta.Path())); err != nil {
					return err
				}
			}
			for _, d := range []dataset{a.payload(), checksums(a.meta)} {
				if err := d.create(f, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// allocate gives the payloads their places. One without rows gets none.
func (s *staged) allocate() error {
	return session(s.path, changing, pageAlign, func(f file) error {
		for i := range s.arrays {
			if s.arrays[i].meta.Rows == 0 || s.arrays[i].recipe != nil {
				continue
			}
			if err := payload(s.arrays[i].meta).allocate(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// find learns the places of all arrays.
func (s *staged) find() error {
	return session(s.path, reading, pageAlign, func(f file) error {
		for i := range s.arrays {
			a := &s.arrays[i]
			if a.meta.Rows == 0 {
				continue
			}
			if err := a.sums.place(f, checksums(a.meta)); err != nil {
				return err
			}
			if a.recipe != nil {
				continue
			}
			p := payload(a.meta)
			if err := a.values.place(f, p); err != nil {
				return err
			}
			if at := a.values.start; at%pageAlign != 0 {
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

// append adds a record, whose fields all have one length.
func (s *staged) append(r *store.Record, sums []uint32) error {
	for i := range s.arrays {
		if err := s.arrays[i].append(r.Values[i], sums[i]); err != nil {
			return err
		}
	}
	return nil
}

// packArray has the rows of a compressed array come from fill, and makes its chunks of them.
func (s *staged) packArray(a *array, workers int, told func(n int64) error, fill func() error) (err error) {
	if a.pack, err = newPacking(s.path, a.payload(), workers, told); err != nil {
		return err
	}
	if err = fill(); err == nil {
		err = a.pack.flush()
	}
	err = errors.Join(err, a.pack.close())
	a.stored, a.pack = a.pack.stored, nil
	return err
}

// finish writes what is still in memory.
func (s *staged) finish() error {
	for i := range s.arrays {
		if err := s.arrays[i].finish(); err != nil {
			return err
		}
	}
	return nil
}

// copyFrom takes over the records and checksums of another file, which must be finished.
func (s *staged) copyFrom(from *staged) error {
	for i := range s.arrays {
		if err := s.arrays[i].values.copyFrom(&from.arrays[i].values); err != nil {
			return err
		}
		if err := s.arrays[i].sums.copyFrom(&from.arrays[i].sums); err != nil {
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
