package layout

import (
	"os"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/tensor"
)

// Part says what a Column holds of its field.
type Part string

// A field has one Column, or two if its records have lengths of their own.
const (
	Whole   Part = ""        // a row is a record
	Values  Part = "values"  // the rows of all records, back to back
	Offsets Part = "offsets" // int64: where in the values each record starts, and where the last one ends
)

// Column is one array of a dataset. Fields consist of columns, columns of extents.
type Column struct {
	Field   int         // position in the schema
	Part    Part        //
	Name    string      // "images", "tokens.values", "tokens.offsets"
	Stored  string      // of Zarr: the name of the field's array or group; "" is the field's name
	Spec    tensor.Spec // of one row
	Rows    int64       // over all extents
	Extents []Extent    // in order of First
	Packed  bool        // of an HDF5 file or Zarr, and not stored as it is: in chunks, compressed, big endian

	// Unaligned says that a Packed column is stored uncompressed, at an offset that is no multiple of its elements' size.
	// Extents list such columns, too, because NumPy reads such elements.
	Unaligned bool
}

// Extent says where consecutive rows of a column are: back to back in one file, from Offset on. Columns of all formats
// are lists of Extents, so that readers need not know the format. Only the rows of a Packed column have no Offset: they
// are the rows from Row on of the dataset Column.Path in the HDF5 file.
//
// Extent k of a field's values and extent k of its offsets belong together: record i of them has rows
// [offset[i]-offset[0], offset[i+1]-offset[0]) of the values. So an extent of offsets has one row more than it has
// records, and can be read without the extent before.
type Extent struct {
	Path   string // of the file
	Folder string // of the dataset, which has all its files, see vfs.OpenIn; "" where Path is the dataset
	Offset int64  // bytes
	First  int64  // number of its first row in the column
	Count  int64  // rows
	Row    int64  // of a Packed column: the number that its first row has in the HDF5 dataset

	// Sums is where the CRC32Cs of the rows' blocks are, as Blocks little-endian uint32s. SumsPath is empty if
	// the rows have no checksums. A block covers BlockRecords rows and starts again with each Extent.
	SumsPath   string
	SumsOffset int64
	SumsCRC32C string // of the whole file SumsPath, where known: 8 hex digits
}

// Extent returns the extent that holds a row, and its number. It panics if no extent holds the row.
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
	panic("layout: no such row")
}

// RowsOf returns how many rows an array of a column must have in a dataset of that many records. Values of a ragged
// field may have any number of rows: for them RowsOf returns there, the number that the array has.
func (c *Column) RowsOf(records, there int64) int64 {
	switch c.Part {
	case Values:
		return there
	case Offsets:
		return records + 1
	}
	return records
}

// Add appends an extent.
func (c *Column) Add(e Extent) {
	e.First = c.Rows
	c.Rows += e.Count
	c.Extents = append(c.Extents, e)
}

// Columns returns the columns, without rows, of a dataset with fields of these specs.
func Columns(fields []tensor.Spec) []Column {
	var list []Column
	for i, f := range fields {
		rows := f
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

// Path returns where a column is in an HDF5 file or in Zarr. It is a dataset with the field's name, or for a ragged
// field one of the two datasets in a group with that name.
func (c *Column) Path() string {
	if c.Part == Whole {
		return "/" + c.stored()
	}
	return "/" + c.stored() + "/" + string(c.Part)
}

// stored returns the name under which the dataset stores the field.
func (c *Column) stored() string {
	if c.Stored != "" {
		return c.Stored
	}
	return c.FieldName()
}

// FieldName returns the name of the column's field.
func (c *Column) FieldName() string { return strings.TrimSuffix(c.Name, "."+string(c.Part)) }

// SumsPath returns where the column's checksums are in an HDF5 file or in Zarr.
func (c *Column) SumsPath() string {
	if c.Part == Whole {
		return hdf5Sums + FileName(c.stored())
	}
	return hdf5Sums + FileName(c.stored()) + "." + string(c.Part)
}

// Cut adds the rows that records [a, b) have in column from. index is the index of a ragged field, and nil for other
// fields.
func (c *Column) Cut(from *Column, index *RaggedIndex, a, b int64) error {
	for k, e := range from.Extents {
		first, records := e.First, e.Count
		if index != nil {
			first, records = index.Extents[k].First, index.Extents[k].Count
		}
		lo, hi := max(a, first)-first, min(b, first+records)-first
		if lo >= hi {
			continue
		}
		if hi-lo < records {
			switch from.Part {
			case Offsets:
				hi++
			case Values:
				var err error
				if lo, hi, err = index.Extents[k].readRows(lo, hi); err != nil {
					return err
				}
			}
			e = e.slice(from.Spec.RecordBytes(), from.Packed, lo, hi)
		}
		c.Add(e)
	}
	return nil
}

// Open opens the file of the rows.
func (e *Extent) Open() (*os.File, error) { return vfs.OpenIn(e.Folder, e.Path) }

// slice returns rows [a, b) of the extent. It keeps the checksums only if a begins a block and b ends one: the checksum
// of a block that is cut covers rows that the slice does not have.
func (e Extent) slice(rowBytes int, packed bool, a, b int64) Extent {
	per := BlockRecords(rowBytes)
	if a%per != 0 || b%per != 0 && b != e.Count {
		e.SumsPath = ""
	}
	e.SumsOffset += 4 * (a / per)
	e.SumsCRC32C = ""
	e.Count = b - a
	if packed {
		e.Row += a
	} else {
		e.Offset += a * int64(rowBytes)
	}
	return e
}
