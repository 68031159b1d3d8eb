package decode

import "encoding/binary"

// zigzag gives the place in a block, by rows, of the k-th coefficient (T.81 figure A.6).
// A run that leads out of the block ends at its last place.
var zigzag = makeZigzag()

func makeZigzag() (z [128]uint8) {
	x, y, up := 0, 0, true
	for k := range 64 {
		z[k] = uint8(8*y + x)
		switch {
		case up && x == 7:
			y, up = y+1, false
		case up && y == 0:
			x, up = x+1, false
		case up:
			x, y = x+1, y-1
		case y == 7:
			x, up = x+1, true
		case x == 0:
			y, up = y+1, true
		default:
			x, y = x-1, y+1
		}
	}
	for k := 64; k < len(z); k++ {
		z[k] = 63
	}
	return z
}

// block decodes one block of a sequential scan into b, which is zero: the difference of its
// first coefficient is returned, not stored. ac tells whether any other coefficient is set;
// ok is false if the bits are no code or the run leads out of the block.
//
// The reader's state lives in registers here: this loop is half of a decoder's time.
func (r *bitReader) block(b *[64]int16, dc, ac *huffTable) (diff int32, hasAC, ok bool) {
	s, ok := r.symbol(dc)
	if !ok || s > 15 {
		return 0, false, false
	}
	diff = extend(r.bits(int(s)), int(s))
	data, pos, acc, n := r.data, r.pos, r.acc, r.n
	k := 1
	for ; k < 64; k++ {
		if n < 32 {
			if pos+8 <= len(data) {
				w := binary.BigEndian.Uint64(data[pos:])
				if !hasFF(w) {
					acc |= w >> (n & 63)
					pos += (63 - n) >> 3
					n |= 56
					goto filled
				}
			}
			r.pos, r.acc, r.n = pos, acc, n
			r.fill()
			pos, acc, n = r.pos, r.acc, r.n
		}
	filled:
		e := ac.fast[acc>>(64-fastBits)]
		if v := int16(e >> 16); v != 0 {
			acc <<= e & 31
			n -= int(e & 31)
			k += int(e >> 12 & 15)
			b[zigzag[k&127]&63] = v
			continue
		}
		sym, length := byte(e>>8), int(e&31)
		if e == 0 {
			if sym, length = ac.long(acc); length == 0 {
				return diff, true, false
			}
		}
		acc <<= uint(length) & 31
		n -= length
		size := int(sym & 15)
		if size == 0 {
			if sym != 0xF0 { // not a run of sixteen: the end of the block
				break
			}
			k += 15
			continue
		}
		k += int(sym >> 4)
		b[zigzag[k&127]&63] = int16(extend(uint32(acc>>(uint(64-size)&63)), size))
		acc <<= uint(size) & 31
		n -= size
	}
	r.pos, r.acc, r.n = pos, acc, n
	return diff, k > 1, k <= 64
}
