package store

import "fmt"

// Extent is where consecutive records of a field lie: back to back in one file, from
// Offset on. Both formats come down to Extents; readers need not know which one it was.
type Extent struct {
	Path   string // of the file
	Offset int64  // bytes
	First  int64  // the first record's number in the dataset
	Count  int64  // records

	// Sums is where the CRC32Cs of the records' blocks lie, as Blocks little-endian uint32s.
	// SumsPath is empty where there are none. A block covers BlockRecords records and starts
	// anew with each Extent.
	SumsPath   string
	SumsOffset int64
	SumsCRC32C string // of the whole file SumsPath, where known: 8 hex digits
}

// Dataset is a dataset on disk whose every extent lies inside its file. It holds no open
// files and may be shared.
type Dataset struct {
	Path     string     // as it was opened
	Format   string     // "flat" or "hdf5"
	Schema   Schema     //
	Records  int64      //
	Extents  [][]Extent // by field, in order of First
	Manifest *Manifest  // nil for a file that penstock did not write
}

// Bytes returns the size of all records.
func (d *Dataset) Bytes() int64 { return d.Records * int64(d.Schema.RecordBytes()) }

// Extent returns the extent of a field, given by its position in the schema, that holds a
// record. It panics if there is none.
func (d *Dataset) Extent(field int, record int64) Extent {
	extents := d.Extents[field]
	low, high := 0, len(extents)
	for low < high-1 {
		mid := (low + high) / 2
		if extents[mid].First <= record {
			low = mid
		} else {
			high = mid
		}
	}
	if e := extents[low]; record >= e.First && record < e.First+e.Count {
		return e
	}
	panic("store: no such record")
}

// Inside reports whether n bytes at offset lie in a file of that size.
func Inside(offset, n, size int64) error {
	if offset < 0 || n < 0 || offset > size || n > size-offset {
		return fmt.Errorf("bytes [%d, +%d) do not lie in a file of %d bytes: %w", offset, n, size, ErrCorrupt)
	}
	return nil
}
