package parquet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// checkParquetEnds checks the magic numbers at both ends of a file, and that the footer fits in the file: the
// library allocates memory for the size that the file claims.
func checkParquetEnds(r io.ReaderAt, size int64) error {
	const mark, tail = 4, 8
	var head, end [8]byte
	if size < mark+tail {
		return errors.New("is not a Parquet file: it is too short")
	}
	if err := readEnds(r, size, head[:mark], end[:]); err != nil {
		return source.WithoutPath(err)
	}
	switch footer := int64(binary.LittleEndian.Uint32(end[:])); {
	case string(head[:mark]) != "PAR1" && string(head[:mark]) != "PARE":
		return errors.New("is not a Parquet file")
	case string(end[mark:]) != "PAR1" && string(end[mark:]) != "PARE":
		return errors.New("is cut short, or was not written to its end: a Parquet file ends with PAR1")
	case footer > size-mark-tail:
		return fmt.Errorf("is corrupt: a footer of %d bytes in a file of %d", footer, size)
	}
	return nil
}

// footBytes is how far before the end of a file readEnds reads besides the ends: the footer is there, and often the
// page index.
const footBytes = 1 << 20

// readEnds reads the first and the last bytes of a file at the same time, as each read is a request in a bucket.
// The byte footBytes before the end is not used: reading it brings the footer into the cache of a bucket while the
// ends are fetched.
func readEnds(r io.ReaderAt, size int64, head, end []byte) error {
	foot := make([]byte, 1)
	parts := [][]byte{head, end, foot}
	offsets := []int64{0, size - int64(len(end)), max(0, size-footBytes)}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { errs[i] = source.ReadAt(r, part, offsets[i]) })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// checkParquetChunks checks that the rows of the row groups add up, that columns are inside of the file, and that
// their compression is supported.
func checkParquetChunks(p *parquet.File, size int64) error {
	rows := int64(0)
	for i, g := range p.Metadata().RowGroups {
		if g.NumRows < 0 || g.NumRows > 1<<62-rows {
			return fmt.Errorf("row group %d of %d rows: %w", i, g.NumRows, store.ErrCorrupt)
		}
		rows += g.NumRows
		for k, c := range g.Columns {
			m := c.MetaData
			if err := checkParquetCodec(m.Codec); err != nil {
				return fmt.Errorf("column %s: %w", strings.Join(m.PathInSchema, "."), err)
			}
			begin := m.DataPageOffset
			// A dictionary page comes before the data pages; without one the offset is 0.
			if d := m.DictionaryPageOffset; d > 0 && d < begin {
				begin = d
			}
			if err := layout.Inside(begin, m.TotalCompressedSize, size); err != nil {
				return fmt.Errorf("row group %d, column %d: %w", i, k, err)
			}
			if m.NumValues < 0 || m.TotalUncompressedSize < 0 {
				return fmt.Errorf("row group %d, column %d: %d values in %d bytes: %w", i, k, m.NumValues, m.TotalUncompressedSize,
					store.ErrCorrupt)
			}
		}
	}
	if rows != p.NumRows() {
		return fmt.Errorf("row groups of %d rows in a file of %d: %w", rows, p.NumRows(), store.ErrCorrupt)
	}
	return nil
}

// checkParquetCodec refuses compression that the library cannot decompress correctly. LZ4 is refused for faults of
// the library: data that does not shrink to a third comes out wrong, as the library decompresses it into memory
// that it then drops, and corrupt data makes it allocate without end.
func checkParquetCodec(c format.CompressionCodec) error {
	switch c {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
		return nil
	}
	return fmt.Errorf("compressed with %v, which is not read; rewrite the file, such as with "+
		"pyarrow.parquet.write_table(pyarrow.parquet.read_table(FILE), OTHER, compression='zstd')", c)
}

var errRuns = errors.New("its booleans are encoded in runs (RLE), which are not read; rewrite the file with " +
	"data_page_version='1.0', or the column as int8")

// noteRuns notes the leaves with booleans that are encoded in runs, which the library decodes to wrong values.
func (s *reader) noteRuns(p *part) {
	if s.runs == nil {
		s.runs = make(map[int]bool)
	}
	for _, g := range p.Metadata().RowGroups {
		for i, at := range p.leaves {
			if at < 0 {
				continue
			}
			c := &g.Columns[at]
			s.runs[i] = s.runs[i] || c.MetaData.Type == format.Boolean && valuesInRuns(c.MetaData)
		}
	}
}

// valuesInRuns reports whether some pages of a column have values in runs. Without encoding statistics, the list of
// encodings also has the encoding of levels, which is always in runs, so a column with plain values gets the
// benefit of the doubt.
func valuesInRuns(m format.ColumnMetaData) bool {
	for _, s := range m.EncodingStats {
		if s.Encoding == format.RLE && (s.PageType == format.DataPage || s.PageType == format.DataPageV2) {
			return true
		}
	}
	return len(m.EncodingStats) == 0 && slices.Contains(m.Encoding, format.RLE) &&
		!slices.Contains(m.Encoding, format.Plain)
}
