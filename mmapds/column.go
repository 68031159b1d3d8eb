package mmapds

import (
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/tensor"
)

// column is one array of a dataset: its rows, and where the files hold them. It never changes once
// the dataset is open, so that all goroutines read it without a lock.
type column struct {
	meta     *layout.Column
	field    string                                // name
	spec     tensor.Spec                           // of a row
	size     int                                   // bytes of a row
	block    int                                   // rows that one checksum covers
	recordOf func(row int) int                     // the record that has a row, for errors
	offsetOf func(e *layout.Extent, row int) int64 // where the file has a row of an extent, or the chunk that contains it
}

// newColumn returns a column of a field whose rows are stored as they are and are records
// themselves. Packed columns, ragged fields and deleted records change offsetOf and recordOf before
// the dataset is used.
func newColumn(meta *layout.Column, field string) *column {
	size := meta.Spec.RecordBytes()
	c := &column{
		meta: meta, field: field, spec: meta.Spec, size: size, block: int(layout.BlockRecords(size)),
		recordOf: func(row int) int { return row },
	}
	c.offsetOf = func(e *layout.Extent, row int) int64 { return e.Offset + int64(row-int(e.First))*int64(size) }
	return c
}

// len returns the number of rows.
func (c *column) len() int { return int(c.meta.Rows) }

// check returns an error if records [a, b) do not all exist.
func (c *column) check(a, b int) error { return checkRange(c.spec.Name, a, b, c.len()) }

// checkRange returns an error, which names the field, if records [a, b) of n do not all exist.
func checkRange(field string, a, b, n int) error {
	if a < 0 || b < a || b > n {
		return fmt.Errorf("mmapds: field %q: records [%d, %d) of %d do not exist", field, a, b, n)
	}
	return nil
}

// perStep returns how many rows are copied between two checks of a context: about 4 MiB.
func (c *column) perStep() int { return max(1, (4<<20)/c.size) }

// extent returns the number of the extent that holds a row, by binary search. The row must exist.
func (c *column) extent(row int) int {
	low, high := 0, len(c.meta.Extents)
	for low < high-1 {
		if mid := (low + high) / 2; int(c.meta.Extents[mid].First) <= row {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// where returns the file of a row, the number of its extent, and the place of its first byte or of
// its chunk. The path is empty if the row does not exist.
func (c *column) where(row int) (path string, shard int, at int64) {
	if row < 0 {
		return "", 0, 0
	}
	shard = c.extent(row)
	e := &c.meta.Extents[shard]
	return e.Path, shard, c.offsetOf(e, row)
}

// lost returns the error for a row whose mapped memory the system could not provide.
func (c *column) lost(row int, cause error) error {
	path, shard, at := c.where(row)
	return &ReadError{Field: c.field, Shard: shard, Path: path, Offset: at, Err: cause, record: c.recordOf(row)}
}

// ReadError says that mapped memory of a record cannot be read any more: the file was truncated, or
// its disk failed.
type ReadError struct {
	Field  string
	Shard  int    // number of the extent; 0 in an HDF5 file
	Path   string // of the file
	Offset int64  // of the first byte of the row that could not be read
	Err    error
	record int
}

// Record returns the number of the record.
func (e *ReadError) Record() int { return e.record }

// Error names the record, the field and the place in the file.
func (e *ReadError) Error() string {
	return fmt.Sprintf("mmapds: record %d: field %q: shard %d: %s: byte %#x cannot be read any more; was it truncated? %v",
		e.record, e.Field, e.Shard, e.Path, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
