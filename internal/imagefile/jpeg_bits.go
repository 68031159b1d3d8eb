package imagefile

import "encoding/binary"

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

// hasFF reports whether a byte of w is 0xFF. It may also say so of a byte 0xFE beside one.
func hasFF(w uint64) bool { return (^w-0x0101010101010101)&w&0x8080808080808080 != 0 }

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
	if r.pad == 0 { // the marker may lie among bytes not yet read, or behind none
		for pos < len(r.data) && r.data[pos] != 0xFF {
			pos++
		}
	}
	for pos+1 < len(r.data) && r.data[pos] == 0xFF && r.data[pos+1] == 0xFF {
		pos++
	}
	if r.overrun() || pos+1 >= len(r.data) || r.data[pos] != 0xFF || r.data[pos+1] != byte(mRST0+k) {
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
