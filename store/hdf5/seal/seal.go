// Package seal protects the metadata of HDF5 files with a manifest by a checksum: of every byte outside the
// columns of records, whose blocks have their own checksums. It follows the end of the HDF5 data, where programs
// must ignore it, as 16 bytes:
//
//	8 bytes  "penstock"
//	uint32   version
//	uint32   CRC32C; all little endian
//
// Version 1, of a new file, is over those bytes in the order of their places, then the size of the file without the
// seal (uint64). Version 2, of a file that was changed, leaves out what only earlier generations have: it is over the
// superblock and all that it leads to, but columns: object headers, the B-trees of chunks, and the other datasets, in
// the order of their places, each byte once, and then that size.
//
// A program that changes the file with the HDF5 library writes over it, or cuts it off.
package seal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

const (
	magic     = layout.HDF5Seal
	sealBytes = layout.HDF5SealBytes
)

// Versions of the seal: of a file that has one generation, and of one that was changed.
const (
	versionNew = iota + 1
	versionChanged
)

// ErrNone says that an HDF5 file has no checksum of its metadata: another program wrote it.
var ErrNone = errors.New("its metadata has no checksum")

// Append appends the seal to a new file with a manifest that is otherwise complete. The caller syncs the file.
func Append(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return appendTo(f, f, info.Size(), versionNew)
}

// AppendTo appends the seal of a generation to a file of size bytes. The reader then has the file
// with the superblock of that generation.
func AppendTo(f io.WriterAt, then io.ReaderAt, size int64) error {
	return appendTo(f, then, size, versionChanged)
}

func appendTo(f io.WriterAt, then io.ReaderAt, size int64, version uint32) error {
	sum, _, err := sumMetadata(then, size, version)
	if err != nil {
		return fmt.Errorf("checksum of the metadata: %w", err)
	}
	seal := binary.LittleEndian.AppendUint32([]byte(magic), version)
	_, err = f.WriteAt(binary.LittleEndian.AppendUint32(seal, sum), size)
	return err
}

// End returns the size of an HDF5 file, of at most size bytes, with its seal: what follows was never
// committed. Without a seal the error is ErrNone. The metadata are not compared with it.
func End(f io.ReaderAt, size int64) (end int64, err error) {
	ends := []int64{size}
	if file, err := meta.Open(f, size); err == nil {
		ends = []int64{file.Superblock.EOF + sealBytes, size}
	}
	for _, end := range ends {
		var seal [len(magic)]byte
		if end < sealBytes || end > size {
			continue
		}
		if _, err := f.ReadAt(seal[:], end-sealBytes); err != nil {
			return 0, err
		}
		if string(seal[:]) == magic {
			return end, nil
		}
	}
	return 0, ErrNone
}

// Check compares the metadata of an HDF5 file of size bytes with its seal, and returns
// how many bytes that vouches for. Without a seal the error is ErrNone; metadata that differ
// are ErrCorrupt. The records are not read.
func Check(f io.ReaderAt, size int64) (covered int64, err error) {
	end, err := End(f, size)
	if err != nil {
		return 0, err
	}
	var seal [sealBytes]byte
	if _, err := f.ReadAt(seal[:], end-sealBytes); err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint32(seal[8:])
	if v < versionNew || v > versionChanged {
		return 0, fmt.Errorf("the checksum of its metadata is of version %d, this program knows 1 and 2: %w", v,
			store.ErrUnsupported)
	}
	sum, n, err := sumMetadata(f, end-sealBytes, v)
	if err != nil {
		return 0, fmt.Errorf("its metadata is not as it was written: %w", layout.Mark(err))
	}
	if want := binary.LittleEndian.Uint32(seal[12:]); sum != want {
		return 0, fmt.Errorf("its metadata is not as it was written: CRC32C %s, want %s: %w", layout.HexCRC(sum),
			layout.HexCRC(want), store.ErrCorrupt)
	}
	return n, nil
}

// sumMetadata returns the CRC32C of the seal for a file of size bytes, and how many bytes of
// the file that covers.
func sumMetadata(f io.ReaderAt, size int64, version uint32) (sum uint32, covered int64, err error) {
	file, err := meta.Open(f, size)
	if err != nil {
		return 0, 0, err
	}
	rows, index, err := recordExtents(file)
	if err != nil {
		return 0, 0, err
	}
	parts := gaps(rows, size)
	if version == versionChanged {
		parts = structures(file, rows, index)
	}
	var h layout.CRCWriter
	at := int64(0)
	for _, p := range parts {
		if p[0] = max(p[0], at); p[1] <= p[0] {
			continue
		}
		n, err := io.Copy(&h, io.NewSectionReader(f, p[0], p[1]-p[0]))
		if err == nil && n < p[1]-p[0] {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, 0, err
		}
		covered, at = covered+n, p[1]
	}
	if err := binary.Write(&h, binary.LittleEndian, size); err != nil {
		return 0, 0, err
	}
	return h.Sum, covered, nil
}

// gaps returns what is between extents, up to size.
func gaps(rows [][2]int64, size int64) (list [][2]int64) {
	at := int64(0)
	for _, r := range append(rows, [2]int64{size, size}) {
		list = append(list, [2]int64{at, r[0]})
		at = max(at, r[1])
	}
	return list
}

// structures returns where everything is that the superblock leads to, except rows.
func structures(file *meta.File, rows, index [][2]int64) [][2]int64 {
	var all [][2]int64
	for _, e := range file.Extents() {
		if part := [2]int64{e.Offset, e.Offset + e.Size}; !slices.Contains(rows, part) {
			all = append(all, part)
		}
	}
	return sorted(append(all, index...))
}

func sorted(list [][2]int64) [][2]int64 {
	slices.SortFunc(list, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return list
}

// recordExtents returns where the columns of a file with a manifest have their bytes, [begin, end), sorted, and where
// the indexes of their chunks are.
func recordExtents(file *meta.File) (list, index [][2]int64, err error) {
	opened, err := layout.OpenHDF5("", file, nil, layout.Refused)
	if err != nil {
		return nil, nil, err
	}
	d := opened.(*store.Dataset)
	if d.Manifest == nil {
		return nil, nil, fmt.Errorf("its manifest cannot be found: %w", store.ErrCorrupt)
	}
	for _, c := range layout.Of(d).Columns {
		if !c.Packed {
			for _, e := range c.Extents {
				list = append(list, [2]int64{e.Offset, e.Offset + e.Count*int64(c.Spec.RecordBytes())})
			}
			continue
		}
		data, err := file.Dataset(c.Path())
		if err != nil {
			return nil, nil, err
		}
		table, err := data.Chunks()
		if err != nil {
			return nil, nil, err
		}
		for _, chunk := range table.Chunks {
			list = append(list, [2]int64{chunk.Offset, chunk.Offset + chunk.Size})
		}
		for _, e := range table.Index {
			index = append(index, [2]int64{e.Offset, e.Offset + e.Size})
		}
	}
	return sorted(list), index, nil
}
