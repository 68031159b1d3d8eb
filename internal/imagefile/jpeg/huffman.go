package jpeg

import (
	"bytes"
	"encoding/binary"

	"github.com/penstock/penstock/internal/imagefile/format"
)

const (
	lookBits = 9  // of huffTable.look
	fastBits = 11 // of huffTable.fast

	// fastEnd is a step that leads out of every block: the end of a block.
	fastEnd = 63
)

// A fastEntry decodes the next fastBits bits to one or two coefficients with their values: the bits
// they take in bits 0 to 5, the steps from one coefficient to the next in bits 6 to 11 and 12 to
// 17, the second value in bits 18 to 22, the first in the others. With one coefficient the second
// step is 0. A run of sixteen zeros is a step to a zero. 0 means that the bits do not hold one.
type fastEntry uint32

func single(step, value int32, length int) fastEntry {
	return fastEntry(uint32(value)<<23 | uint32(step)<<6 | uint32(length))
}

func (e fastEntry) length() uint  { return uint(e & 63) }
func (e fastEntry) step() uint8   { return uint8(e>>6) & 63 }
func (e fastEntry) step2() uint8  { return uint8(e>>12) & 63 }
func (e fastEntry) value() int16  { return int16(int32(e) >> 23) }
func (e fastEntry) value2() int16 { return int16(int32(e<<9) >> 27) }

// ends reports whether the end of the block is part of the entry.
func (e fastEntry) ends() bool { return e.step() == fastEnd || e.step2() == fastEnd }

// then returns e followed by the coefficients of next, e alone if that is too much.
func (e fastEntry) then(next fastEntry) fastEntry {
	v := next.value()
	if e == 0 || next == 0 || e.ends() || e.length()+next.length() > fastBits || v < -16 || v > 15 {
		return e
	}
	return e + fastEntry(uint32(v)&31<<18|uint32(next.step())<<12|uint32(next.length()))
}

// huffTable decodes one Huffman table (T.81 annex C).
type huffTable struct {
	look    [1 << lookBits]uint16 // by the next bits: symbol<<8 | length, 0 if the code is longer
	fast    [1 << fastBits]fastEntry
	counts  [16]byte
	symbols [256]byte
	first   [17]int32 // of each length, the first code ...
	index   [17]int32 // ... and where its symbol stands
	kind    tableKind
	built   bool // everything above is of counts and symbols
	defined bool // by the file at hand
	bad     bool // not a prefix code, or not one of a JPEG
}

// check returns an error if a scan cannot be decoded with the table.
func (t *huffTable) check() error {
	switch {
	case !t.defined:
		return format.Corrupt(format.JPEG, "a Huffman table is missing")
	case t.bad:
		return format.Corrupt(format.JPEG, "a Huffman table with codes or symbols that cannot be")
	}
	return nil
}

// tableKind says what the symbols of a Huffman table are.
type tableKind uint8

const (
	ofFirst       tableKind = iota // sizes of first coefficients
	ofOthers                       // runs and sizes of the others in a sequential frame
	ofProgressive                  // and in a progressive one, where ends of blocks come with numbers
)

// kindOf returns the kind of a table of that class (T.81 B.2.4.2).
func (h *header) kindOf(class byte) tableKind {
	switch {
	case class == 0:
		return ofFirst
	case h.progressive():
		return ofProgressive
	}
	return ofOthers
}

// build reads a table from counts of codes by length and their symbols. The table is bad if
// there is no such prefix code, or one of all ones, which is reserved, or a symbol of a first
// coefficient is above 15. Most files have the tables of the file before: they are kept.
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

// enter puts a code into the tables, under everything that can follow it.
func (t *huffTable) enter(code int32, length int, symbol byte) {
	if free := lookBits - length; free >= 0 {
		for rest := range int32(1) << free {
			t.look[code<<free|rest] = uint16(symbol)<<8 | uint16(length)
		}
	}
	step, size := int32(symbol>>4)+1, int(symbol&15)
	switch {
	case t.kind == ofProgressive && size == 0 && step > 1:
		return // the end of several blocks, or a run of sixteen zeros
	case size == 0 && step < 16:
		step = fastEnd
	}
	free := fastBits - length
	if free < size || size > 8 { // the value has nine bits
		return
	}
	at, same := int(code)<<free, 1<<(free-size) // entries that differ only in bits after the value
	for v := range uint32(1) << size {
		e := single(step, extend(v, size), length+size)
		for i := range same {
			t.fast[at+i] = e
		}
		at += same
	}
}

// pair enters second coefficients after first ones.
func (t *huffTable) pair() {
	alone := t.fast
	for i, e := range alone {
		t.fast[i] = e.then(alone[i<<e.length()&(1<<fastBits-1)])
	}
}

// symbol decodes the code at the top of acc, where at least 16 bits are present. A length
// of 0 means that no code matches.
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

// symbol decodes the next symbol alone. It returns false if the bits are not a code.
func (r *bitReader) symbol(t *huffTable) (byte, bool) {
	if r.n < 32 {
		r.fill()
	}
	s, length := t.symbol(r.acc)
	r.acc <<= length
	r.n -= length
	return s, length > 0
}

// bitReader reads the bits of an entropy-coded segment: stuffed zero bytes go, and at a
// marker or the end of the file it makes up zeros, which overrun counts.
type bitReader struct {
	data []byte
	pos  int
	acc  uint64 // the next bit is the highest
	n    int    // bits in acc
	pad  int    // bits made up; they are the last of acc
}

// start begins at data[pos].
func (r *bitReader) start(data []byte, pos int) { *r = bitReader{data: data, pos: pos} }

// overrun reports whether bits were used that the file does not hold.
func (r *bitReader) overrun() bool { return r.pad > r.n }

// fill makes n at least 56; it stays below 64.
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

// hasFF reports whether a byte of w is 0xFF. It may also say so of a byte 0xFE next to one.
func hasFF(w uint64) bool { return (^w-0x0101010101010101)&w&0x8080808080808080 != 0 }

// next returns the next byte of a scan. FF 00 is a byte FF; at another FF, which begins a marker, and at the end it
// returns zeros and counts them in pad, as libjpeg does: a scan may be read past its end by the width of the reader's
// buffer.
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

// skipRestart moves on to the interval after restart marker number k, 0 to 7. It returns
// false if that is not what follows.
func (r *bitReader) skipRestart(k int) bool {
	pos := r.pos
	if r.pad == 0 { // the marker may lie among bytes not yet read, or come next
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

// extend makes a signed value of size magnitude bits (T.81 F.2.2.1, EXTEND).
func extend(v uint32, size int) int32 {
	if size == 0 {
		return 0
	}
	if v < 1<<(size-1) {
		return int32(v) - 1<<size + 1
	}
	return int32(v)
}
