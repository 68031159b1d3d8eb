package decode

import "bytes"

// fastBits is how many bits are looked at to decode a short code, and its value with it.
const fastBits = 10

// huffTable decodes one Huffman table (T.81 annex C).
type huffTable struct {
	// fast is indexed by the next fastBits bits. The low byte of an entry is how many bits
	// it consumes, the next the symbol, the upper half the value that followed the code, 0
	// if that did not fit. An entry of 0 is a longer code, or none.
	fast    [1 << fastBits]uint32
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
	copy(t.symbols[:], symbols)
	code, k := int32(0), int32(0)
	for length := 1; length <= 16; length++ {
		n := int32(counts[length-1])
		t.first[length], t.index[length] = code, k
		if code+n > 1<<length || int(k+n) > len(symbols) {
			return false
		}
		for range n {
			t.short(code, length, t.symbols[k])
			code++
			k++
		}
		code <<= 1
	}
	t.built, t.defined = true, true
	return true
}

// short enters a code into the fast table, under everything that can follow it.
func (t *huffTable) short(code int32, length int, symbol byte) {
	if length > fastBits {
		return
	}
	free := fastBits - length
	size := int(symbol & 15)
	for rest := range uint32(1) << free {
		e := uint32(symbol)<<8 | uint32(length)
		if size > 0 && size <= free {
			v := extend(rest>>(free-size), size)
			e = uint32(v)<<16 | uint32(symbol)<<8 | uint32(length+size)
		}
		t.fast[uint32(code)<<free|rest] = e
	}
}

// long decodes a code of more than fastBits bits at the top of acc. A length of 0 means
// that there is no such code.
func (t *huffTable) long(acc uint64) (symbol byte, length int) {
	for length = fastBits + 1; length <= 16; length++ {
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
	s, length := byte(0), 0
	if e := t.fast[r.acc>>(64-fastBits)]; e != 0 {
		s = byte(e >> 8)
		length = int(e & 31)
		if e>>16 != 0 {
			length -= int(s & 15)
		}
	} else {
		s, length = t.long(r.acc)
	}
	r.acc <<= length
	r.n -= length
	return s, length > 0
}
