package jpeg

import (
	"bytes"
	"encoding/binary"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// lookBits and fastBits are how many bits index the two tables of a huffTable. Larger tables hold
// more of the long codes, but crowd the CPU's cache: these take 9 KB together.
const (
	lookBits = 9  // by code, for one symbol
	fastBits = 11 // by code and value, for one or two coefficients

	// fastEnd is a step that leads out of every block: the end of a block.
	fastEnd = 63
)

// A fastEntry is what the next fastBits bits of the stream decode to: one or two coefficients with
// their values. Its fields are
//
//	bits  0 to  5  length: how many bits of the stream it takes
//	bits  6 to 11  step: from the coefficient before to the first one, by zigzag
//	bits 12 to 17  step2: from the first to the second, 0 if there is but one
//	bits 18 to 22  the second value, signed
//	bits 23 to 31  the first value, signed
//
// A step of fastEnd stands for the end of the block. A run of sixteen zeros is a step to a
// coefficient of 0. The entry 0 means that the bits hold no whole coefficient, and that symbol must
// decode them.
type fastEntry uint32

// single returns the entry of one coefficient.
func single(step, value int32, length int) fastEntry {
	return fastEntry(uint32(value)<<23 | uint32(step)<<6 | uint32(length))
}

func (e fastEntry) length() uint  { return uint(e & 63) }
func (e fastEntry) step() uint8   { return uint8(e>>6) & 63 }
func (e fastEntry) step2() uint8  { return uint8(e>>12) & 63 }
func (e fastEntry) value() int16  { return int16(int32(e) >> 23) }
func (e fastEntry) value2() int16 { return int16(int32(e<<9) >> 27) }

// ends reports whether the code for the end of the block is in the entry.
func (e fastEntry) ends() bool { return e.step() == fastEnd || e.step2() == fastEnd }

// then returns e followed by the coefficient of next. It returns e alone if e ends the block, if
// both are too long for the table, or if next's value does not fit into five bits.
func (e fastEntry) then(next fastEntry) fastEntry {
	v := next.value()
	if e == 0 || next == 0 || e.ends() || e.length()+next.length() > fastBits || v < -16 || v > 15 {
		return e
	}
	return e + fastEntry(uint32(v)&31<<18|uint32(next.step())<<12|uint32(next.length()))
}

// huffTable decodes the codes of one Huffman table (T.81 annex C). look and fast serve short codes;
// counts, first, index and symbols serve longer codes, length by length. The order of the fields is
// part of the kernel in assembly (accel_amd64.go).
type huffTable struct {
	look    [1 << lookBits]uint16 // indexed by the next bits: symbol<<8 | length, 0 if the code is longer
	fast    [1 << fastBits]fastEntry
	counts  [16]byte  // codes of length 1 to 16
	symbols [256]byte // in the order of their codes
	first   [17]int32 // of each length, the first code ...
	index   [17]int32 // ... and where its symbol stands
	kind    tableKind
	built   bool // look and fast agree with counts and symbols
	defined bool // by the file at hand, not only by one before
	bad     bool // counts and symbols make no prefix code, or no table of a JPEG
}

// check returns an error if the file has not defined the table, or has defined one that cannot be.
func (t *huffTable) check() error {
	switch {
	case !t.defined:
		return format.Corrupt(format.JPEG, "a Huffman table is missing")
	case t.bad:
		return format.Corrupt(format.JPEG, "a Huffman table with codes or symbols that cannot be")
	}
	return nil
}

// tableKind says what the symbols of a Huffman table mean, which decides on its fast entries.
type tableKind uint8

const (
	ofFirst       tableKind = iota // sizes of differences of first coefficients
	ofOthers                       // runs and sizes of the other coefficients of a sequential frame
	ofProgressive                  // the same of a progressive frame, where one symbol can end many blocks
)

// kindOf returns the kind of a table of class 0 or 1, as a DHT segment writes them (T.81 B.2.4.2).
func (h *header) kindOf(class byte) tableKind {
	switch {
	case class == 0:
		return ofFirst
	case h.progressive():
		return ofProgressive
	}
	return ofOthers
}

// build makes the table for counts of codes by length and the symbols in their order. The table is
// bad if there is no such prefix code, if a code is all ones, which T.81 reserves, or if the symbol
// of a first coefficient is above 15. A bad table is an error only when a scan uses it.
//
// Most files of a data set have the same tables, so an equal table of the file before is kept as it
// is.
func (t *huffTable) build(counts *[16]byte, symbols []byte, kind tableKind) {
	if t.built && t.kind == kind && t.counts == *counts && bytes.Equal(t.symbols[:len(symbols)], symbols) {
		t.defined = true
		return
	}
	*t = huffTable{counts: *counts, kind: kind, defined: true, bad: true}
	copy(t.symbols[:], symbols)
	code, k := int32(0), int32(0)
	for length := 1; length <= 16; length++ {
		n := int32(counts[length-1])
		t.first[length], t.index[length] = code, k
		if code+n >= 1<<length || int(k+n) > len(symbols) {
			return
		}
		for range n {
			if kind == ofFirst && t.symbols[k] > 15 {
				return
			}
			t.enter(code, length, t.symbols[k])
			code++
			k++
		}
		code <<= 1
	}
	if kind != ofFirst {
		t.pair()
	}
	t.built, t.bad = true, false
}

// enter puts a code of that length into look and fast: under all indices that begin with the code.
func (t *huffTable) enter(code int32, length int, symbol byte) {
	if free := lookBits - length; free >= 0 {
		for rest := range int32(1) << free {
			t.look[code<<free|rest] = uint16(symbol)<<8 | uint16(length)
		}
	}
	step, size := int32(symbol>>4)+1, int(symbol&15)
	switch {
	case t.kind == ofProgressive && size == 0 && step > 1:
		return // symbols with bits after them, or a run of sixteen: the slow way
	case size == 0 && step < 16:
		step = fastEnd
	}
	free := fastBits - length
	if free < size || size > 8 { // the entry has nine bits for a signed value
		return
	}
	at, same := int(code)<<free, 1<<(free-size) // indices that differ only after the value have the same entry
	for v := range uint32(1) << size {
		e := single(step, extend(v, size), length+size)
		for i := range same {
			t.fast[at+i] = e
		}
		at += same
	}
}

// pair adds a second coefficient to entries that leave bits for one. It looks up the bits after the
// first coefficient, filled with zeros, among the entries of single coefficients, and refuses a
// coefficient that takes more bits than are left.
func (t *huffTable) pair() {
	alone := t.fast
	for i, e := range alone {
		t.fast[i] = e.then(alone[i<<e.length()&(1<<fastBits-1)])
	}
}

// symbol decodes the code at the top of acc, which holds at least 16 bits. A length of 0 means that
// no code matches.
func (t *huffTable) symbol(acc uint64) (symbol byte, length int) {
	if e := t.look[acc>>(64-lookBits)]; e != 0 {
		return byte(e >> 8), int(e & 31)
	}
	for length = lookBits + 1; length <= 16; length++ {
		d := int32(acc>>(64-length)) - t.first[length]
		if d < int32(t.counts[length-1]) {
			return t.symbols[t.index[length]+d], length
		}
	}
	return 0, 0
}

// symbol takes one code off the stream and returns its symbol, or false if the bits are not a code.
func (r *bitReader) symbol(t *huffTable) (byte, bool) {
	if r.n < 32 {
		r.fill()
	}
	s, length := t.symbol(r.acc)
	r.acc <<= length
	r.n -= length
	return s, length > 0
}

// bitReader reads the bits of the entropy-coded data of a scan. It drops the zero byte that follows
// a data byte FF (T.81 B.1.1.5). It stops at a marker or at the end of the file, and makes up zeros
// from there on: overrun tells afterwards whether they were used, so that the loops need no check
// for each bit.
//
// pos, acc and n stand together in this order for the kernel in assembly.
type bitReader struct {
	data []byte
	pos  int
	acc  uint64 // the next bit is the highest; after n bits come zeros, or what the stream has next
	n    int    // bits in acc
	pad  int    // made-up bits so far, which are the last of acc
}

// start makes r read data from pos on, and forgets the bits that it read before.
func (r *bitReader) start(data []byte, pos int) { *r = bitReader{data: data, pos: pos} }

// overrun reports whether bits were taken that the file does not hold.
func (r *bitReader) overrun() bool { return r.pad > r.n }

// fill reads bytes until acc holds 56 to 63 bits. Eight bytes without FF go in at once: as many
// whole bytes as there is room for count, and the bits of the next byte that also land in acc are
// the same that the next fill puts there.
func (r *bitReader) fill() {
	if r.pos+8 <= len(r.data) {
		if w := binary.BigEndian.Uint64(r.data[r.pos:]); !hasFF(w) {
			r.acc |= w >> r.n
			r.pos += (63 - r.n) >> 3
			r.n |= 56
			return
		}
	}
	for r.n < 56 {
		r.acc |= uint64(r.next()) << (56 - r.n)
		r.n += 8
	}
}

// hasFF reports whether a byte of w is FF. It is the usual test for a zero byte, of the complement;
// it does not tell which byte is FF.
func hasFF(w uint64) bool { return (^w-0x0101010101010101)&w&0x8080808080808080 != 0 }

// next returns the next byte of a scan. FF 00 is a byte FF. At another FF, which begins a marker,
// and at the end of the file it returns zeros without moving on, and counts them in pad, as libjpeg
// does: buffers reach past the end of every scan, and only overrun tells whether a bit from there
// was needed.
func (r *bitReader) next() byte {
	if r.pos < len(r.data) {
		b := r.data[r.pos]
		if b != 0xFF {
			r.pos++
			return b
		}
		if r.pos+1 < len(r.data) && r.data[r.pos+1] == 0 {
			r.pos += 2
			return b
		}
	}
	r.pad += 8
	return 0
}

// bits returns the next count bits, at most 32, as a number.
func (r *bitReader) bits(count int) uint32 {
	if count == 0 {
		return 0
	}
	if r.n < count {
		r.fill()
	}
	v := uint32(r.acc >> (64 - count))
	r.acc <<= count
	r.n -= count
	return v
}

// skipRestart moves on to the data after restart marker number k, 0 to 7, with an empty buffer. It
// returns false if that marker does not follow.
func (r *bitReader) skipRestart(k int) bool {
	pos := r.pos
	if r.pad == 0 { // the buffer has not met the marker: bytes of padding may come before it
		for pos < len(r.data) && r.data[pos] != 0xFF {
			pos++
		}
	}
	for pos+1 < len(r.data) && r.data[pos] == 0xFF && r.data[pos+1] == 0xFF {
		pos++
	}
	if r.overrun() || pos+1 >= len(r.data) || r.data[pos] != 0xFF || r.data[pos+1] != byte(RST0+k) {
		return false
	}
	r.start(r.data, pos+2)
	return true
}

// extend returns the signed value for the size bits v (EXTEND of T.81 F.2.2.1): a number whose
// highest bit is 0 is negative.
func extend(v uint32, size int) int32 {
	if size == 0 {
		return 0
	}
	if v < 1<<(size-1) {
		return int32(v) - 1<<size + 1
	}
	return int32(v)
}
