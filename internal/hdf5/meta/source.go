package meta

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// undef is the undefined address: all bits one, whatever the size of offsets in the file.
const undef = ^uint64(0)

// maxStructure is the most bytes of one metadata structure (a heap segment, a header).
const maxStructure = 256 << 20

// source reads metadata by address. Addresses are relative to base, errors speak of
// offsets in the file. It is the only place that compares extents with the file size.
type source struct {
	r       io.ReaderAt
	size    int64 // true size of the file
	base    int64 // offset of address 0: the size of the user block
	offSize int   // bytes of an address: 2, 4 or 8
	lenSize int   // bytes of a length: 2, 4 or 8
	left    int64 // bytes that may still be read or built
	over    bool  // left was not enough
	lax     bool  // stored checksums are not compared: lets tests corrupt what is behind them
	trace   *[]Extent
}

// abs returns the file offset of an address, for messages.
func (s *source) abs(addr uint64) int64 { return int64(uint64(s.base) + addr) }

// inside reports whether n bytes at addr are in the file.
func (s *source) inside(addr, n uint64) bool {
	room := uint64(s.size - s.base)
	return addr <= room && n <= room-addr
}

// spend takes n bytes from the budget.
func (s *source) spend(n int64) bool {
	if n > s.left {
		s.left, s.over = 0, true
		return false
	}
	s.left -= n
	return true
}

// read returns a cursor over n bytes at addr, which carries the error if there is one.
func (s *source) read(addr, n uint64, what string) *cursor {
	c := &cursor{src: s, at: s.abs(addr), what: what}
	switch {
	case addr == undef:
		c.at = 0
		c.corrupt("its address is undefined")
	case !s.inside(addr, n):
		c.corrupt("%d bytes reach past the end of the file (%d bytes)", n, s.size)
	case n > maxStructure:
		c.unsupported("%d bytes are more than the limit of %d for one structure", n, maxStructure)
	case !s.spend(int64(n)):
		c.unsupported("metadata is larger than the limit for a file of %d bytes", s.size)
	default:
		c.load(int(n))
	}
	return c
}

// readUpTo is read of at most n bytes: fewer where the file ends.
func (s *source) readUpTo(addr, n uint64, what string) *cursor {
	if room := uint64(s.size - s.base); addr < room {
		n = min(n, room-addr)
	}
	return s.read(addr, n, what)
}

// note records where a structure is, for File.Extents; n is cut at the end of the file.
func (s *source) note(addr, n uint64, what string) {
	if s.trace == nil || !s.inside(addr, 0) {
		return
	}
	if n = min(n, uint64(s.size-s.base)-addr); n == 0 {
		return
	}
	*s.trace = append(*s.trace, Extent{Offset: s.abs(addr), Size: int64(n), What: what})
}

// load fills the cursor from the file.
func (c *cursor) load(n int) {
	b := make([]byte, n)
	got, err := c.src.r.ReadAt(b, c.at)
	switch {
	case got == n:
		c.b = b
	case err == nil || errors.Is(err, io.EOF):
		c.corrupt("the file ends at byte %d", c.at+int64(got))
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

func (s *source) errorAt(kind error, addr uint64, what, format string, args ...any) error {
	return &Error{What: what, Addr: s.abs(addr), Msg: fmt.Sprintf(format, args...), Kind: kind}
}
