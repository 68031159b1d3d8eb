package meta

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// undef is the undefined address: all bits one, whatever the size of offsets in the file.
const undef = ^uint64(0)

// maxStructure is the largest size of one metadata structure, such as a heap segment or a header.
const maxStructure = 256 << 20

// source reads metadata by address. Addresses are relative to Base, and errors name offsets in the file. source is the
// only place that compares extents with the size of the file, so no parser can forget it.
type source struct {
	R       io.ReaderAt
	Size    int64 // true size of the file
	Base    int64 // offset of address 0: the size of the user block
	OffSize int   // bytes of an address: 2, 4 or 8
	LenSize int   // bytes of a length: 2, 4 or 8
	Left    int64 // bytes that may still be read or built
	Over    bool  // Left was not enough for a read
	Lax     bool  // stored checksums are not compared: lets tests corrupt the bytes that they cover
	Trace   *[]Extent
}

// Abs returns the file offset of an address, for messages.
func (s *source) Abs(addr uint64) int64 { return int64(uint64(s.Base) + addr) }

// Inside reports whether n bytes at addr are in the file.
func (s *source) Inside(addr, n uint64) bool {
	room := uint64(s.Size - s.Base)
	return addr <= room && n <= room-addr
}

// Spend takes n bytes from the budget, and reports whether the budget was large enough. An exhausted budget stays
// exhausted.
func (s *source) Spend(n int64) bool {
	if n > s.Left {
		s.Left, s.Over = 0, true
		return false
	}
	s.Left -= n
	return true
}

// Read returns a cursor over n bytes at addr. The cursor carries the error if the bytes are outside of the file, too
// many for a structure, or beyond the budget.
func (s *source) Read(addr, n uint64, what string) *cursor {
	c := &cursor{Src: s, At: s.Abs(addr), What: what}
	switch {
	case addr == undef:
		c.At = 0
		c.Corrupt("its address is undefined")
	case !s.Inside(addr, n):
		c.Corrupt("%d bytes reach past the end of the file (%d bytes)", n, s.Size)
	case n > maxStructure:
		c.Unsupported("%d bytes are more than the limit of %d for one structure", n, maxStructure)
	case !s.Spend(int64(n)):
		c.Unsupported("metadata is larger than the limit for a file of %d bytes", s.Size)
	default:
		c.load(int(n))
	}
	return c
}

// ReadUpTo is like Read, but returns fewer bytes if the file ends before n.
func (s *source) ReadUpTo(addr, n uint64, what string) *cursor {
	if room := uint64(s.Size - s.Base); addr < room {
		n = min(n, room-addr)
	}
	return s.Read(addr, n, what)
}

// Note records the place of a structure for File.Extents. n is cut at the end of the file.
func (s *source) Note(addr, n uint64, what string) {
	if s.Trace == nil || !s.Inside(addr, 0) {
		return
	}
	if n = min(n, uint64(s.Size-s.Base)-addr); n == 0 {
		return
	}
	*s.Trace = append(*s.Trace, Extent{Offset: s.Abs(addr), Size: int64(n), What: what})
}

// load fills the cursor from the file.
func (c *cursor) load(n int) {
	b := make([]byte, n)
	got, err := c.Src.R.ReadAt(b, c.At)
	switch {
	case got == n:
		c.B = b
	case err == nil || errors.Is(err, io.EOF):
		c.Corrupt("the file ends at byte %d", c.At+int64(got))
	default:
		c.fail(err, "reading %d bytes failed", n)
	}
}

// product multiplies without overflow; ok is false if the result exceeds 63 bits.
func product(xs ...uint64) (n uint64, ok bool) {
	n = 1
	for _, x := range xs {
		if x == 0 {
			return 0, true
		}
	}
	for _, x := range xs {
		hi, lo := bits.Mul64(n, x)
		if hi != 0 || lo > 1<<63-1 {
			return 0, false
		}
		n = lo
	}
	return n, true
}

// encSize returns the bytes that libhdf5 uses to store numbers up to n.
func encSize(n uint64) int { return (max(bits.Len64(n), 1)-1)/8 + 1 }

func (s *source) ErrorAt(kind error, addr uint64, what, format string, args ...any) error {
	return &Error{What: what, Addr: s.Abs(addr), Msg: fmt.Sprintf(format, args...), Kind: kind}
}

// saturate returns a*b+c, or the largest number.
func saturate(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	sum, carry := bits.Add64(lo, c, 0)
	if hi != 0 || carry != 0 {
		return 1<<64 - 1
	}
	return sum
}

// log2 returns the place of the highest bit.
func log2(n uint64) int { return bits.Len64(n) - 1 }
