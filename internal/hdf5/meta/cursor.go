package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// cursor reads fields of one structure. The first failure sticks: every later read gives
// zero, so a parser checks err once after a run of fields and before it uses a count.
type cursor struct {
	src  *source
	b    []byte
	pos  int
	at   int64 // offset of b[0] in the file
	what string
	err  error
}

// fail records the first failure of the structure.
func (c *cursor) fail(kind error, format string, args ...any) {
	if c.err == nil {
		c.err = &Error{What: c.what, Addr: c.at, Msg: fmt.Sprintf(format, args...), Kind: kind}
		c.b = nil
		c.pos = 0
	}
}

func (c *cursor) corrupt(format string, args ...any)     { c.fail(ErrCorrupt, format, args...) }
func (c *cursor) unsupported(format string, args ...any) { c.fail(ErrUnsupported, format, args...) }

// left returns the bytes that are not read yet, 0 after a failure.
func (c *cursor) left() int { return len(c.b) - c.pos }

// bytes returns the next n bytes, not a copy, or nil after a failure.
func (c *cursor) bytes(n uint64) []byte {
	if c.err != nil {
		return nil
	}
	if n > uint64(c.left()) {
		c.corrupt("field of %d bytes at byte %d, but only %d are left", n, c.pos, c.left())
		return nil
	}
	p := c.b[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return p
}

func (c *cursor) skip(n int) { c.bytes(uint64(n)) }

// pad skips to the next multiple of 8 bytes from start, as far as there are bytes.
func (c *cursor) pad(start int) {
	n := -(c.pos - start) & 7
	c.skip(min(n, c.left()))
}

func (c *cursor) u8() uint8 {
	if p := c.bytes(1); p != nil {
		return p[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if p := c.bytes(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if p := c.bytes(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (c *cursor) u64() uint64 { return c.uint(8) }

// uint reads a little-endian number of n bytes, at most 8.
func (c *cursor) uint(n int) uint64 { return littleEndian(c.bytes(uint64(n))) }

// addr reads an address; undefined is undef.
func (c *cursor) addr() uint64 { return c.ones(c.src.offSize) }

// length reads a size or count; all bits one is undef.
func (c *cursor) length() uint64 { return c.ones(c.src.lenSize) }

func (c *cursor) ones(n int) uint64 {
	v := c.uint(n)
	if n < 8 && v == 1<<(8*n)-1 {
		return undef
	}
	return v
}

// signature expects the four letters that open a structure.
func (c *cursor) signature(want string) {
	if got := c.bytes(4); got != nil && string(got) != want {
		c.corrupt("signature is %q, want %q", got, want)
	}
}

// version expects a version number between lo and hi and returns it.
func (c *cursor) version(lo, hi uint8) uint8 {
	v := c.u8()
	if c.err == nil && (v < lo || v > hi) {
		c.unsupported("version %d; known are %d to %d", v, lo, hi)
	}
	return v
}

// cstring reads up to and including a NUL byte and returns what is before it.
func (c *cursor) cstring() string {
	if c.err != nil {
		return ""
	}
	n := bytes.IndexByte(c.b[c.pos:], 0)
	if n < 0 {
		c.corrupt("string at byte %d has no end", c.pos)
		return ""
	}
	s := string(c.b[c.pos : c.pos+n])
	c.pos += n + 1
	return s
}

// checksum compares the next four bytes with the checksum of all bytes before them.
func (c *cursor) checksum() {
	sum := lookup3(c.b[:c.pos])
	c.sameSum(sum, c.u32())
}

func (c *cursor) sameSum(sum, stored uint32) {
	if c.err == nil && sum != stored && !c.src.lax {
		c.corrupt("checksum is %08x, stored is %08x", sum, stored)
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
