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

// checkParquetEnds makes sure that a file has the marks of Parquet, and a footer that is in
// it: the library allocates what the file claims.
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

// footBytes is how many bytes before the end of a file are read at the same time: the footer, and the index of pages.
const footBytes = 1 << 20

// readEnds reads what a file begins and ends with. In a bucket, each part takes the time of a request.
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

// checkParquetChunks makes sure that the rows of a file add up, and its columns are in it.
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

// checkParquetCodec refuses what the library cannot decompress. LZ4 is among it: what does not
// shrink to a third of its size, the library decompresses to memory that it then drops, and
// gives other bytes for it; and of corrupt data it asks for memory without end.
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

// noteRuns notes columns of booleans that are encoded in runs: the library makes
// other values of them.
func (s *reader) noteRuns(p *parquet.File) {
	if s.runs == nil {
		s.runs = make(map[int]bool)
	}
	for _, g := range p.Metadata().RowGroups {
		for i, c := range g.Columns {
			s.runs[i] = s.runs[i] || c.MetaData.Type == format.Boolean && valuesInRuns(c.MetaData)
		}
	}
}

// valuesInRuns reports whether pages of a column have values in runs. If the file does not list the encodings of its
// pages, the encodings of levels count too, which are always runs.
func valuesInRuns(m format.ColumnMetaData) bool {
	for _, s := range m.EncodingStats {
		if s.Encoding == format.RLE && (s.PageType == format.DataPage || s.PageType == format.DataPageV2) {
			return true
		}
	}
	return len(m.EncodingStats) == 0 && slices.Contains(m.Encoding, format.RLE) &&
		!slices.Contains(m.Encoding, format.Plain)
}
