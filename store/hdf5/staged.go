package hdf5

import (
	"errors"
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// slack is the space that is reserved beyond the structure for the attributes and the manifest that Commit adds. Commit
// reserves again when it knows their size.
const slack = 256 << 10

// staged is an HDF5 file under construction. Its container does not have it open, so records can be written at the
// places that the container assigned.
type staged struct {
	path      string
	container container
	objects   []encode.Object // two a column: its rows, the checksums of their blocks
	file      *os.File
	arrays    []array
	size      int64 // bytes of the structure, payload included
}

// arrange describes the objects of columns: for each column its rows and the checksums of their blocks. If recipes is
// not nil, recipes[k] says how column k is compressed; nil for a column that is not compressed.
func arrange(columns []layout.Column, recipes []*encode.Recipe) (objects []encode.Object) {
	for k, c := range columns {
		rows, sums := payload(c), encode.Object{
			Path: c.SumsPath(), Element: encode.Element{DType: tensor.Uint32}, Align: smallAlign,
			Dims: []int64{layout.Blocks(c.Rows, c.Spec.RecordBytes())},
		}
		if recipes != nil && recipes[k] != nil {
			rows.Chunked = &encode.Chunked{Recipe: *recipes[k]}
		}
		objects = append(objects, rows, sums)
	}
	return objects
}

// fixedColumns returns the columns of n records of a schema without ragged fields.
func fixedColumns(schema store.Schema, n int64) []layout.Column {
	columns := layout.Columns(schema.Specs())
	for k := range columns {
		columns[k].Rows = n
	}
	return columns
}

// newStaged makes the file path with room for the rows of the columns, and reserves its disk space. Space for
// compressed columns is not reserved, as their sizes are not known yet.
func newStaged(with container, path string, columns []layout.Column, recipes []*encode.Recipe) (*staged, error) {
	s := &staged{path: path, container: with, objects: arrange(columns, recipes)}
	if err := with.create(path, s.objects); err != nil {
		return nil, err
	}
	if err := s.open(columns); err != nil {
		return nil, err
	}
	if err := s.reserve(slack); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens the file for writing records.
func (s *staged) open(columns []layout.Column) error {
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return pathless(err)
	}
	s.file = file
	for k, c := range columns {
		a := newArray(c, &s.objects[2*k])
		if err := errors.Join(a.values.place(file, a.object), a.sums.place(file, &s.objects[2*k+1])); err != nil {
			s.close()
			return err
		}
		s.arrays = append(s.arrays, a)
	}
	return nil
}

// place sets the file, start and room of a column to the file, offset and size of its HDF5 dataset. A chunked dataset
// has no offset.
func (c *column) place(file *os.File, o *encode.Object) (err error) {
	c.file, c.start = file, o.At
	if o.Chunked == nil {
		c.room, err = o.Bytes()
	}
	return err
}

// reserve reserves disk space for the whole file and extra bytes after it, so that a full disk is found now: libhdf5
// can fail silently when the disk is full at the wrong moment. If the system cannot reserve, nothing happens.
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

// append adds a record of a schema without ragged fields.
func (s *staged) append(r *store.Record, sums []uint32) error {
	for i := range s.arrays {
		if err := s.arrays[i].append(r.Values[i], sums[i]); err != nil {
			return err
		}
	}
	return nil
}

// packArray makes the chunks of a compressed array from the rows that fill adds.
func (s *staged) packArray(a *array, workers int, reported func(n int64) error, fill func() error) error {
	to, err := s.container.chunks(s.path, a.object)
	if err != nil {
		return err
	}
	r := a.object.Chunked.Recipe
	a.pack, err = write.NewChunkPipeline(to, write.ChunkPipelineOptions{
		Records: r.Records, RowBytes: r.Record, Workers: workers, Reported: reported,
		Encoder: func() (write.ChunkEncoder, error) { return encode.NewEncoder(r) },
	})
	if err != nil {
		return errors.Join(err, to.Close())
	}
	if err = fill(); err == nil {
		err = a.pack.Flush()
	}
	err = errors.Join(err, a.pack.Close())
	a.stored, a.pack = a.pack.Stored(), nil
	return err
}

// finish writes everything that is still in memory.
func (s *staged) finish() error {
	for i := range s.arrays {
		if err := s.arrays[i].finish(); err != nil {
			return err
		}
	}
	return nil
}

// copyFrom copies the records and checksums of another file, which must be finished.
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

// close closes the file, which the stage removes later.
func (s *staged) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// complete adds the manifest and all attributes to the file, and marks it complete.
func (s *staged) complete(m *store.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	manifest := encode.Object{Path: manifestPath, Element: encode.Element{Text: len(data)}, Data: data}
	all, err := view.Describe(append(s.objects, manifest), m.Schema())
	if err != nil {
		return err
	}
	own := len(s.objects)
	room := int64(slack)
	for _, o := range all {
		room += 4096 + int64(len(o.Data))
		for _, a := range o.Attributes {
			room += 2 * int64(len(a.Data))
		}
	}
	if err := s.reserve(room); err != nil {
		return err
	}
	root := []encode.Attribute{
		encode.Text("format", m.Format), encode.Integer("format_version", int64(m.Version)),
		encode.Integer("num_samples", m.Records),
	}
	return s.container.complete(s.path, all[:own], all[own:], root)
}
