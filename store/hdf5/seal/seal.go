// Package seal protects the metadata of HDF5 files with a manifest by a checksum: of every byte outside the
// columns of records, whose blocks have their own checksums. It follows the end of the HDF5 data, where programs
// must ignore it, as 16 bytes:
//
//	8 bytes  "penstock"
//	uint32   version
//	uint32   CRC32C; all little endian
//
// It is over those bytes in the order of their places, then the size of the file without the seal (uint64).
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
	magic     = "penstock"
	sealBytes = 16
	version   = 1
)

// ErrNone says that an HDF5 file has no checksum of its metadata: another program wrote it.
var ErrNone = errors.New("its metadata has no checksum")

// Append appends the seal to a new file with a manifest that is otherwise complete. The caller syncs the file.
func Append(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum, _, err := sumMetadata(f, info.Size())
	if err != nil {
		return fmt.Errorf("checksum of the metadata: %w", err)
	}
	seal := binary.LittleEndian.AppendUint32([]byte(magic), version)
	_, err = f.WriteAt(binary.LittleEndian.AppendUint32(seal, sum), info.Size())
	return err
}

// find reads the seal, which is the last bytes of a file. HDF5 allows bytes after its end of file address, and readers
// ignore them.
func find(f io.ReaderAt, size int64) (seal [sealBytes]byte, err error) {
	if size < sealBytes {
		return seal, ErrNone
	}
	if _, err := f.ReadAt(seal[:], size-sealBytes); err != nil {
		return seal, err
	}
	if string(seal[:len(magic)]) != magic {
		return seal, ErrNone
	}
	return seal, nil
}

// Check compares the metadata of an HDF5 file of size bytes with its seal, and returns how many bytes the seal covers.
// Without a seal the error is ErrNone; metadata that differs is ErrCorrupt. The records are not read.
func Check(f io.ReaderAt, size int64) (covered int64, err error) {
	seal, err := find(f, size)
	if err != nil {
		return 0, err
	}
	if v := binary.LittleEndian.Uint32(seal[8:]); v != version {
		return 0, fmt.Errorf("the checksum of its metadata is of version %d, this program knows %d: %w", v, version,
			store.ErrUnsupported)
	}
	sum, n, err := sumMetadata(f, size-sealBytes)
	if err != nil {
		return 0, fmt.Errorf("its metadata is not as it was written: %w", err)
	}
	if want := binary.LittleEndian.Uint32(seal[12:]); sum != want {
		return 0, fmt.Errorf("its metadata is not as it was written: CRC32C %s, want %s: %w", layout.HexCRC(sum),
			layout.HexCRC(want), store.ErrCorrupt)
	}
	return n, nil
}

// sumMetadata returns the CRC32C that the seal has for a file of size bytes, and how many bytes of the file it covers.
func sumMetadata(f io.ReaderAt, size int64) (sum uint32, covered int64, err error) {
	file, err := meta.Open(f, size)
	if err != nil {
		return 0, 0, err
	}
	rows, err := recordExtents(file)
	if err != nil {
		return 0, 0, err
	}
	var h layout.CRCWriter
	for _, p := range gaps(rows, size) {
		if p[1] <= p[0] {
			continue
		}
		n, err := io.Copy(&h, io.NewSectionReader(f, p[0], p[1]-p[0]))
		if err == nil && n < p[1]-p[0] {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, 0, err
		}
		covered += n
	}
	if err := binary.Write(&h, binary.LittleEndian, size); err != nil {
		return 0, 0, err
	}
	return h.Sum, covered, nil
}

// gaps returns the ranges between extents, up to size.
func gaps(rows [][2]int64, size int64) (list [][2]int64) {
	at := int64(0)
	for _, r := range append(rows, [2]int64{size, size}) {
		list = append(list, [2]int64{at, r[0]})
		at = max(at, r[1])
	}
	return list
}

// recordExtents returns the ranges [begin, end) of the columns' bytes in a file with a manifest, sorted.
func recordExtents(file *meta.File) (list [][2]int64, err error) {
	opened, err := layout.OpenHDF5("", file, nil, layout.Refused)
	if err != nil {
		return nil, err
	}
	d := opened.(*store.Dataset)
	if d.Manifest == nil {
		return nil, fmt.Errorf("its manifest cannot be found: %w", store.ErrCorrupt)
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
			return nil, err
		}
		table, err := data.Chunks()
		if err != nil {
			return nil, err
		}
		for _, chunk := range table.Chunks {
			list = append(list, [2]int64{chunk.Offset, chunk.Offset + chunk.Size})
		}
	}
	slices.SortFunc(list, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return list, nil
}
