package decode

import "bytes"

const (
	lookBits = 9  // of huffTable.look
	fastBits = 10 // of huffTable.fast

	// An entry of huffTable.fast is a coefficient, complete with its value: the bits it
	// takes in bits 0 to 4, the zeros before it in bits 8 to 15, the value in the upper half.
	// The end of a block is a zero after so many zeros that it leads out of the block, a run
	// of sixteen zeros a zero after fifteen.
	fastEnd = 128
	// Where code and value take more than fastBits bits, the entry says this alone.
	fastSlow = 0x80
)

// huffTable decodes one Huffman table (T.81 annex C).
type huffTable struct {
	look    [1 << lookBits]uint16 // by the next bits: symbol<<8 | length, 0 if the code is longer
	fast    [1 << fastBits]uint32 // by the next bits: a code and the value behind it
	counts  [16]byte
	symbols [256]byte
	first   [17]int32 // of each length, the first code ...
	index   [17]int32 // ... and where its symbol stands
	built   bool      // everything above is of counts and symbols
	defined bool      // by the file at hand
}

// build reads a table from counts of codes by length and their symbols. It returns false
// if there is no such prefix code. Most files have the tables of the file before: they are
// kept.
func (t *huffTable) build(counts *[16]byte, symbols []byte) bool {
	if t.built && t.counts == *counts && bytes.Equal(t.symbols[:len(symbols)], symbols) {
		t.defined = true
		return true
	}
	*t = huffTable{counts: *counts}
	for i := range t.fast {
		t.fast[i] = fastSlow
	}
	copy(t.symbols[:], symbols)
	code, k := int32(0), int32(0)
	for length := 1; length <= 16; length++ {
		n := int32(counts[length-1])
		t.first[length], t.index[length] = code, k
		if code+n > 1<<length || int(k+n) > len(symbols) {
			return false
		}
		for range n {
			t.enter(code, length, t.symbols[k])
			code++
			k++
		}
		code <<= 1
	}
	t.built, t.defined = true, true
	return true
}

// enter puts a code into the tables, under everything that can follow it.
func (t *huffTable) enter(code int32, length int, symbol byte) {
	if free := lookBits - length; free >= 0 {
		for rest := range int32(1) << free {
			t.look[code<<free|rest] = uint16(symbol)<<8 | uint16(length)
		}
	}
	run, size := uint32(symbol>>4), int(symbol&15)
	if symbol&15 == 0 && run < 15 {
		run = fastEnd
	}
	free := fastBits - length
	if free < size {
		return
	}
	for rest := range uint32(1) << free {
		v := extend(rest>>(free-size), size)
		t.fast[uint32(code)<<free|rest] = uint32(v)<<16 | run<<8 | uint32(length+size)
	}
}

// symbol decodes the code at the top of acc, at least 16 bits of which are there. A length
// of 0 means that there is no such code.
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

// symbol decodes the next symbol alone. It returns false if the bits are no code.
func (r *bitReader) symbol(t *huffTable) (byte, bool) {
	if r.n < 32 {
		r.fill()
	}
	s, length := t.symbol(r.acc)
	r.acc <<= length
	r.n -= length
	return s, length > 0
}
