package layout

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/tensor"
)

// maxBytes is more than any column has.
const maxBytes = 1 << 62

// Shard is a run of records that have files of their own.
type Shard struct {
	First int64  `json:"first"` // its first record
	Count int64  `json:"count"` // records, at least 1
	Files []File `json:"files"` // for every column its payload, then its checksums
}

// File is one file of a flat dataset.
type File struct {
	Field  string `json:"field"`
	Name   string `json:"name"`           // inside the dataset's folder
	Rows   int64  `json:"rows,omitempty"` // of the values of a ragged field; for others they follow from the shard
	Bytes  int64  `json:"bytes"`          // the whole file
	CRC32C string `json:"crc32c"`         // of the whole file, 8 hex digits
}

// ColumnsOf returns the columns of shards whose files are in a folder. The shards must come from a manifest that
// DecodeManifest returned; ColumnsOf does not look at the files.
func ColumnsOf(fields []tensor.Spec, shards []Shard, dir string) []Column {
	columns, dir := Columns(fields), filepath.Clean(dir)
	for _, s := range shards {
		for k := range columns {
			c, payload, sums := &columns[k], s.Files[2*k], s.Files[2*k+1]
			c.Add(Extent{
				Path: filepath.Join(dir, payload.Name), Folder: dir, Offset: HeaderBytes, Count: rowsOf(s, c, payload),
				SumsPath: filepath.Join(dir, sums.Name), SumsOffset: HeaderBytes, SumsCRC32C: sums.CRC32C,
			})
		}
	}
	return columns
}

// CheckFiles compares the files of a shard with the files that shard number of a dataset with these columns must have,
// and adds the shard's rows to the columns. Names may differ, as in a dataset whose columns were changed.
func CheckFiles(s Shard, columns []Column, number int) error {
	if len(s.Files) != 2*len(columns) {
		return fmt.Errorf("%d files for %d columns", len(s.Files), len(columns))
	}
	for k := range columns {
		c, files := &columns[k], s.Files[2*k:2*k+2]
		rows := rowsOf(s, c, files[0])
		if rows < 0 || rows > maxBytes/int64(c.Spec.RecordBytes())-c.Rows {
			return fmt.Errorf("column %s: %d rows after %d", c.Name, rows, c.Rows)
		}
		c.Rows += rows
		payload, sums := c.Files(number, rows)
		for j, want := range []File{payload, sums} {
			got := files[j]
			want.CRC32C = got.CRC32C
			if isArrayName(got.Name) {
				want.Name = got.Name
			}
			if got != want || len(got.CRC32C) != 8 {
				return fmt.Errorf("file %+v is not the %s of %d bytes that the schema needs", got, want.Name, want.Bytes)
			}
		}
	}
	return nil
}

// rowsOf returns how many rows of a column a shard has. A column of ragged values has no rows per record, so its count
// is in the manifest's entry of the payload file.
func rowsOf(s Shard, c *Column, payload File) int64 { return c.RowsOf(s.Count, payload.Rows) }

// Files returns name and size of the two files of a shard that hold its rows of this column, and their checksums,
// without their CRC32C.
func (c *Column) Files(shard int, rows int64) (payload, sums File) {
	size, field := c.Spec.RecordBytes(), c.FieldName()
	name := fmt.Sprintf("%s-%05d", c.fileName(), shard)
	payload = File{Field: field, Name: name + ".npy", Bytes: ArrayBytes(rows, size)}
	if c.Part == Values {
		payload.Rows = rows
	}
	return payload, File{Field: field, Name: name + ".crc.npy", Bytes: ArrayBytes(Blocks(rows, size), 4)}
}

// fileName returns the prefix of the names of a column's files.
func (c *Column) fileName() string {
	field := c.FieldName()
	return FileName(field) + strings.TrimPrefix(c.Name, field)
}

// Renamed reports whether files of shards have other names than the names that follow from their columns and numbers.
func Renamed(fields []tensor.Spec, shards []Shard) bool {
	columns := Columns(fields)
	for number, s := range shards {
		for k := range columns {
			payload, sums := columns[k].Files(number, 0)
			if s.Files[2*k].Name != payload.Name || s.Files[2*k+1].Name != sums.Name {
				return true
			}
		}
	}
	return false
}

// CheckShards compares the sizes and headers of the files of shards in a folder with the manifest.
func CheckShards(folder fs.FS, fields []tensor.Spec, shards []Shard) error {
	columns := Columns(fields)
	for i, s := range shards {
		for k := range columns {
			c, payload, sums := &columns[k], s.Files[2*k], s.Files[2*k+1]
			rows := rowsOf(s, c, payload)
			err := checkFile(folder, payload, c.Spec, rows)
			if err == nil {
				err = checkFile(folder, sums, ChecksumSpec, Blocks(rows, c.Spec.RecordBytes()))
			}
			if err != nil {
				return fmt.Errorf("shard %d: %w", i, err)
			}
		}
	}
	return nil
}

// checkFile makes sure that a file has the size that it must have, and the right header.
func checkFile(folder fs.FS, want File, spec tensor.Spec, n int64) error {
	f, err := folder.Open(want.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", want.Name, WithoutPath(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", want.Name, WithoutPath(err))
	}
	if !info.Mode().IsRegular() || info.Size() != want.Bytes {
		return fmt.Errorf("%s: %d bytes, but the manifest says %d: %w", want.Name, info.Size(), want.Bytes, ErrCorrupt)
	}
	if f, ok := f.(*os.File); ok {
		vfs.Random(f) // else a page after the header is marked, and a touch of it has the system read ahead
	}
	header := make([]byte, HeaderBytes)
	if _, err := io.ReadFull(f, header); err != nil {
		return fmt.Errorf("%s: %w", want.Name, WithoutPath(err))
	}
	if err := checkHeader(header, spec, n); err != nil {
		return fmt.Errorf("%s: %w", want.Name, err)
	}
	return nil
}
