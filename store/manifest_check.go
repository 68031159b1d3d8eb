package store

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// MaxRecords limits the number of records of a dataset. It leaves room to multiply a record number by a record's size.
const MaxRecords = 1 << 46

// maxBytes is more than any column has.
const maxBytes = 1 << 62

// Validate checks all that can be checked without the files.
func (m *Manifest) Validate() error {
	if m.Records < 1 || m.Records > MaxRecords {
		return fmt.Errorf("%d records", m.Records)
	}
	if err := m.Schema().Validate(); err != nil {
		return err
	}
	for _, f := range m.Fields {
		if !f.Ragged && m.Records > maxBytes/int64(f.RecordBytes()) {
			return fmt.Errorf("field %q: %d records of %d bytes are more than any file", f.Name, m.Records, f.RecordBytes())
		}
	}
	if err := m.checkSplits(); err != nil {
		return err
	}
	for name := range m.Metadata {
		if path.Base(name) != ZarrNode || !fs.ValidPath(name) {
			return fmt.Errorf("%q is not a file of metadata", name)
		}
	}
	if len(m.Shards) == 0 {
		return nil
	}
	return m.checkShards()
}

// checkSplits makes sure that each record is in one split, if there are any.
func (m *Manifest) checkSplits() error {
	if len(m.Splits) == 0 {
		return nil
	}
	if err := CheckSplitNames(m.SplitNames()); err != nil {
		return err
	}
	var all [][2]int64
	for _, s := range m.Splits {
		if !slices.IsSortedFunc(s.Ranges, compareRanges) {
			return fmt.Errorf("split %q: its ranges are not in order", s.Name)
		}
		all = append(all, s.Ranges...)
	}
	slices.SortFunc(all, compareRanges)
	next := int64(0)
	for _, r := range all {
		if r[0] != next || r[1] <= r[0] {
			return fmt.Errorf("splits: records [%d, %d) do not follow record %d", r[0], r[1], next)
		}
		next = r[1]
	}
	if next != m.Records {
		return fmt.Errorf("splits hold %d records, the manifest says %d", next, m.Records)
	}
	return nil
}

func compareRanges(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) }

// SplitNames returns the names of the splits, in order; nil without splits.
func (m *Manifest) SplitNames() []string {
	var names []string
	for _, s := range m.Splits {
		names = append(names, s.Name)
	}
	return names
}

// CheckSplitNames takes the same names as for fields.
func CheckSplitNames(names []string) error {
	for i, name := range names {
		if !isFieldName(name) {
			return fmt.Errorf("split %q: a name is 1 to 100 letters, digits, _ and -, not starting with -", name)
		}
		if slices.Index(names, name) != i {
			return fmt.Errorf("split %q: there are two of that name", name)
		}
	}
	return nil
}

// checkShards makes sure that the shards cover [0, Records) once, and that each names for
// every column a payload and a checksum file of the right size, by a plain file name.
func (m *Manifest) checkShards() error {
	columns := m.Schema().Columns()
	var next int64
	for i, s := range m.Shards {
		if s.First != next || s.Count < 1 || s.Count > m.Records-next {
			return fmt.Errorf("shard %d: records [%d, +%d) do not follow record %d of %d", i, s.First, s.Count, next, m.Records)
		}
		next += s.Count
		if err := s.CheckFiles(m.Schema(), columns, i); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	if next != m.Records {
		return fmt.Errorf("shards hold %d records, the manifest says %d", next, m.Records)
	}
	return nil
}

// CheckFiles compares the files with those that shard number of a dataset with these columns must have, and adds
// its rows to those of the columns.
func (s Shard) CheckFiles(schema Schema, columns []Column, number int) error {
	if len(s.Files) != 2*len(columns) {
		return fmt.Errorf("%d files for %d columns", len(s.Files), len(columns))
	}
	for k := range columns {
		c, files := &columns[k], s.Files[2*k:2*k+2]
		rows := s.rows(c, files[0])
		if rows < 0 || rows > maxBytes/int64(c.Spec.RecordBytes())-c.Rows {
			return fmt.Errorf("column %s: %d rows after %d", c.Name, rows, c.Rows)
		}
		c.Rows += rows
		payload, sums := c.Files(schema.Fields[c.Field].Name, number, rows)
		for j, want := range []File{payload, sums} {
			got := files[j]
			want.CRC32C = got.CRC32C
			if got != want || len(got.CRC32C) != 8 {
				return fmt.Errorf("file %+v is not the %s of %d bytes that the schema needs", got, want.Name, want.Bytes)
			}
		}
	}
	return nil
}

// rows returns how many rows of a column the shard has; those of values are in its payload
// file's entry.
func (s Shard) rows(c *Column, payload File) int64 { return c.rowsOf(s.Count, payload.Rows) }

// Files returns name and size of the two files of a shard that hold its rows of this column, and their checksums,
// without their CRC32C.
func (c *Column) Files(field string, shard int, rows int64) (payload, sums File) {
	size := c.Spec.RecordBytes()
	payload = File{Field: field, Name: fmt.Sprintf("%s-%05d.npy", c.Name, shard), Bytes: arrayBytes(rows, size)}
	if c.Part == Values {
		payload.Rows = rows
	}
	return payload, File{Field: field, Name: fmt.Sprintf("%s-%05d.crc.npy", c.Name, shard), Bytes: arrayBytes(Blocks(rows, size), 4)}
}

// checksumSpec is the array that a checksum file holds.
var checksumSpec = tensor.Spec{Name: "crc", DType: tensor.Uint32}
