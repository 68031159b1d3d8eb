package store

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/tensor"
)

// Part says what of its field a Column holds.
type Part string

// A field has one Column, or two if its records have lengths of their own.
const (
	Whole   Part = ""        // a row is a record
	Values  Part = "values"  // the rows of all records, back to back
	Offsets Part = "offsets" // int64: where in the values each record starts, and where the last one ends
)

// Column is one array of a dataset. Fields are made of columns, columns of extents.
type Column struct {
	Field   int         // position in the schema
	Part    Part        //
	Name    string      // "images", "tokens.values", "tokens.offsets"
	Spec    tensor.Spec // of one row
	Rows    int64       // over all extents
	Extents []Extent    // in order of First
	Packed  bool        // of an HDF5 file or Zarr, and not stored as it is: in chunks, compressed, big endian
}

// Extent is where consecutive rows of a column are: back to back in one file, from Offset
// on. Both formats come down to Extents; readers need not know which one it was. Only the
// rows of a Column that is Packed have no Offset: they are those from Row on of the dataset
// Column.Path in the HDF5 file.
//
// Extent k of a field's values and extent k of its offsets belong together: record i of
// them has rows [offset[i]-offset[0], offset[i+1]-offset[0]) of the values. So there is one
// offset more in it than there are records.
type Extent struct {
	Path   string // of the file
	Offset int64  // bytes
	First  int64  // number of its first row in the column
	Count  int64  // rows
	Row    int64  // of a Packed column: the number that its first row has in the HDF5 dataset

	// Sums is where the CRC32Cs of the rows' blocks are, as Blocks little-endian uint32s.
	// SumsPath is empty where there are none. A block covers BlockRecords rows and starts
	// anew with each Extent.
	SumsPath   string
	SumsOffset int64
	SumsCRC32C string // of the whole file SumsPath, where known: 8 hex digits
}

// Dataset is a dataset on disk whose every extent is inside its file. It holds no open
// files and may be shared.
type Dataset struct {
	Path     string    // as it was opened
	Format   string    // "flat", "hdf5" or "zarr"
	Split    string    // the split that was chosen, if any
	Schema   Schema    //
	Records  int64     //
	Columns  []Column  // in order of the schema, values before offsets
	Manifest *Manifest // of all records and fields; nil for a file that penstock did not write

	names *Dataset // see SourceNames

	zarr map[string]*zarr.Array // the arrays of a folder of Zarr, by column
	hdf5 *meta.File             // the file's metadata, for OpenColumn; nil for a flat dataset
}

// Bytes returns the size of all arrays.
func (d *Dataset) Bytes() int64 {
	n := int64(0)
	for _, c := range d.Columns {
		n += c.Rows * int64(c.Spec.RecordBytes())
	}
	return n
}

// Column returns a column of the field at that position in the schema. It panics if the
// field has no such part.
func (d *Dataset) Column(field int, part Part) *Column {
	for i := range d.Columns {
		if c := &d.Columns[i]; c.Field == field && c.Part == part {
			return c
		}
	}
	panic("store: no such column")
}

// Extent returns the extent that holds a row, and its number. It panics if there is none.
func (c *Column) Extent(row int64) (Extent, int) {
	low, high := 0, len(c.Extents)
	for low < high-1 {
		mid := (low + high) / 2
		if c.Extents[mid].First <= row {
			low = mid
		} else {
			high = mid
		}
	}
	if e := c.Extents[low]; row >= e.First && row < e.First+e.Count {
		return e, low
	}
	panic("store: no such row")
}

// rowsOf returns how many rows an array of a column must have in a dataset of that many records. Values may be as many as
// are there.
func (c *Column) rowsOf(records, there int64) int64 {
	switch c.Part {
	case Values:
		return there
	case Offsets:
		return records + 1
	}
	return records
}

// add puts an extent behind the others.
func (c *Column) add(e Extent) {
	e.First = c.Rows
	c.Rows += e.Count
	c.Extents = append(c.Extents, e)
}

// Columns returns the arrays that datasets of this schema have, without rows.
func (s Schema) Columns() []Column {
	var list []Column
	for i, f := range s.Fields {
		rows := f.Spec
		rows.Ragged = false
		if !f.Ragged {
			list = append(list, Column{Field: i, Name: f.Name, Spec: rows})
			continue
		}
		rows.Name = f.Name + "." + string(Values)
		ends := tensor.Spec{Name: f.Name + "." + string(Offsets), DType: tensor.Int64, Shape: tensor.Shape{}}
		list = append(list,
			Column{Field: i, Part: Values, Name: rows.Name, Spec: rows},
			Column{Field: i, Part: Offsets, Name: ends.Name, Spec: ends})
	}
	return list
}

// Inside reports whether n bytes at offset are in a file of that size.
func Inside(offset, n, size int64) error {
	if offset < 0 || n < 0 || offset > size || n > size-offset {
		return fmt.Errorf("bytes [%d, +%d) are not in a file of %d bytes: %w", offset, n, size, ErrCorrupt)
	}
	return nil
}
