package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/penstock/penstock/internal/vfs"
)

// Checksums are CRC32Cs of consecutive blocks of an extent, as little-endian uint32s.
type Checksums []byte

// Of returns the checksum of a block; block 0 is the first block with a checksum.
func (c Checksums) Of(block int64) uint32 { return binary.LittleEndian.Uint32(c[4*block:]) }

// Compare returns an error, which is ErrCorrupt, if the checksum of a block's bytes is not the checksum that was
// written.
func (c Checksums) Compare(block int64, crc uint32) error {
	want := c.Of(block)
	if crc == want {
		return nil
	}
	return fmt.Errorf("CRC32C is %08x, was %08x when it was written: %w", crc, want, ErrCorrupt)
}

// ReaderAt fills p with the bytes of a file from off on, or returns an error.
type ReaderAt func(path string, p []byte, off int64) error

// ReadFile is the ReaderAt of an extent whose files are on this machine.
func (e *Extent) ReadFile(path string, p []byte, off int64) error {
	f, err := vfs.OpenIn(e.Folder, path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadAt(p, off); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the file ends before the records do: %w", ErrCorrupt)
		}
		return err
	}
	return nil
}

// LoadChecksums reads the checksums of all blocks of an extent that has checksums. A file of checksums has a checksum
// of its own in the manifest, which is compared if it is known: otherwise other rows with checksums to match would look
// right.
func (e *Extent) LoadChecksums(rowBytes int, read ReaderAt) (Checksums, error) {
	blocks := Blocks(e.Count, rowBytes)
	if e.SumsCRC32C == "" {
		return e.ReadChecksums(0, blocks, read)
	}
	file := make([]byte, ArrayBytes(blocks, 4))
	if err := read(e.SumsPath, file, 0); err != nil {
		return nil, err
	}
	if err := e.CheckSumsFile(file); err != nil {
		return nil, err
	}
	if err := Inside(e.SumsOffset, 4*blocks, int64(len(file))); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(e.SumsPath), err)
	}
	return file[e.SumsOffset:][:4*blocks], nil
}

// ReadChecksums reads the checksums of n blocks from block first on, without comparing them with anything.
func (e *Extent) ReadChecksums(first, n int64, read ReaderAt) (Checksums, error) {
	c := make(Checksums, 4*n)
	if n == 0 {
		return c, nil
	}
	return c, read(e.SumsPath, c, e.SumsOffset+4*first)
}

// CheckSumsFile compares all bytes of the file SumsPath with SumsCRC32C, if that is known.
func (e *Extent) CheckSumsFile(file []byte) error {
	got := HexCRC(CRC32C(file))
	if e.SumsCRC32C == "" || got == e.SumsCRC32C {
		return nil
	}
	return fmt.Errorf("its checksum file %s is corrupt (CRC32C %s, was %s), the records themselves may be whole: %w",
		filepath.Base(e.SumsPath), got, e.SumsCRC32C, ErrCorrupt)
}

// BlockSet is a set of blocks of an extent, such as the blocks whose checksums were found right. Make sets its
// size. Any goroutine may call the other methods, as readers of one dataset share the set.
type BlockSet struct {
	n    int64
	bits atomic.Pointer[[]atomic.Uint64] // nil: no block was added
}

// Make makes the set empty, for blocks below n. It takes no memory before the first block is added, so that extents
// which are never read cost nothing. No other method may run concurrently.
func (s *BlockSet) Make(n int64) {
	s.n = n
	s.bits.Store(nil)
}

// Has reports whether a block is in the set.
func (s *BlockSet) Has(block int64) bool {
	bits := s.bits.Load()
	return bits != nil && (*bits)[block/64].Load()>>(block%64)&1 == 1
}

// Add adds a block, and reports whether it was not in the set before.
func (s *BlockSet) Add(block int64) bool {
	bits := s.bits.Load()
	if bits == nil {
		made := make([]atomic.Uint64, (s.n+63)/64)
		s.bits.CompareAndSwap(nil, &made) // or another goroutine was first
		bits = s.bits.Load()
	}
	bit := uint64(1) << (block % 64)
	return (*bits)[block/64].Or(bit)&bit == 0
}

// Remove removes a block, and reports whether it was in the set.
func (s *BlockSet) Remove(block int64) bool {
	bits, bit := s.bits.Load(), uint64(1)<<(block%64)
	return bits != nil && (*bits)[block/64].And(^bit)&bit != 0
}
