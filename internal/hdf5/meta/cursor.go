package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// cursor reads the fields of one structure. The first failure sticks, and every later read returns zero, so a parser
// checks Err once after a run of fields, and always before it uses a count.
type cursor struct {
	Src  *source
	B    []byte
	Pos  int
	At   int64 // offset of b[0] in the file
	What string
	Err  error
}

// fail records the first failure of the structure.
func (c *cursor) fail(kind error, format string, args ...any) {
	if c.Err == nil {
		c.Err = &Error{What: c.What, Addr: c.At, Msg: fmt.Sprintf(format, args...), Kind: kind}
		c.B = nil
		c.Pos = 0
	}
}

func (c *cursor) Corrupt(format string, args ...any)     { c.fail(ErrCorrupt, format, args...) }
func (c *cursor) Unsupported(format string, args ...any) { c.fail(ErrUnsupported, format, args...) }

// Left returns the bytes that are not read yet, 0 after a failure.
func (c *cursor) Left() int { return len(c.B) - c.Pos }

// Bytes returns the next n bytes without copying them, or nil after a failure.
func (c *cursor) Bytes(n uint64) []byte {
	if c.Err != nil {
		return nil
	}
	if n > uint64(c.Left()) {
		c.Corrupt("field of %d bytes at byte %d, but only %d are left", n, c.Pos, c.Left())
		return nil
	}
	p := c.B[c.Pos : c.Pos+int(n) : c.Pos+int(n)]
	c.Pos += int(n)
	return p
}

func (c *cursor) Skip(n int) { c.Bytes(uint64(n)) }

// Pad skips to the next multiple of 8 bytes from start, as far as there are bytes.
func (c *cursor) Pad(start int) {
	n := -(c.Pos - start) & 7
	c.Skip(min(n, c.Left()))
}

func (c *cursor) U8() uint8 {
	if p := c.Bytes(1); p != nil {
		return p[0]
	}
	return 0
}

func (c *cursor) U16() uint16 {
	if p := c.Bytes(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (c *cursor) U32() uint32 {
	if p := c.Bytes(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (c *cursor) U64() uint64 { return c.Uint(8) }

// Uint reads a little-endian number of n bytes, at most 8.
func (c *cursor) Uint(n int) uint64 { return littleEndian(c.Bytes(uint64(n))) }

// Addr reads an address. The undefined address of the file is returned as undef.
func (c *cursor) Addr() uint64 { return c.ones(c.Src.OffSize) }

// Length reads a size or count. If all bits of the number are 1, it returns undef.
func (c *cursor) Length() uint64 { return c.ones(c.Src.LenSize) }

// ones reads an unsigned number of n bytes. If all bits of the number are 1, it returns undef, whatever n is: addresses
// have the size that the superblock says, and "undefined address" has all bits set in that size.
func (c *cursor) ones(n int) uint64 {
	v := c.Uint(n)
	if n < 8 && v == 1<<(8*n)-1 {
		return undef
	}
	return v
}

// Signature expects the four letters that open a structure.
func (c *cursor) Signature(want string) {
	if got := c.Bytes(4); got != nil && string(got) != want {
		c.Corrupt("signature is %q, want %q", got, want)
	}
}

// Version expects a version number between lo and hi and returns it.
func (c *cursor) Version(lo, hi uint8) uint8 {
	v := c.U8()
	if c.Err == nil && (v < lo || v > hi) {
		c.Unsupported("version %d; known are %d to %d", v, lo, hi)
	}
	return v
}

// Cstring reads up to and including a NUL byte, and returns the text before the NUL.
func (c *cursor) Cstring() string {
	if c.Err != nil {
		return ""
	}
	n := bytes.IndexByte(c.B[c.Pos:], 0)
	if n < 0 {
		c.Corrupt("string at byte %d has no end", c.Pos)
		return ""
	}
	s := string(c.B[c.Pos : c.Pos+n])
	c.Pos += n + 1
	return s
}

// Checksum compares the next four bytes with the checksum of all bytes before them.
func (c *cursor) Checksum() {
	sum := Checksum(c.B[:c.Pos])
	c.SameSum(sum, c.U32())
}

// SameSum makes a wrong checksum the error of the cursor, unless the source is Lax: tests corrupt bytes that a checksum
// covers, to reach the checks behind it.
func (c *cursor) SameSum(sum, stored uint32) {
	if c.Err == nil && sum != stored && !c.Src.Lax {
		c.Corrupt("checksum is %08x, stored is %08x", sum, stored)
	}
}

// littleEndian decodes up to 8 bytes; more than 8 keep the lowest 64 bits.
func littleEndian(p []byte) uint64 {
	var v uint64
	for i := min(len(p), 8) - 1; i >= 0; i-- {
		v = v<<8 | uint64(p[i])
	}
	return v
}

// untilNUL cuts p at its first NUL byte.
func untilNUL(p []byte) string {
	if n := bytes.IndexByte(p, 0); n >= 0 {
		p = p[:n]
	}
	return string(p)
}
