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

// difference decodes the first coefficient of a sequential block, less the one of the block
// before. It returns false if the bits are no code.
func (r *bitReader) difference(dc *huffTable) (int32, bool) {
	if r.n < 32 {
		r.fill()
	}
	if e := dc.fast[r.acc>>(64-fastBits)]; e&fastSlow == 0 {
		r.acc <<= e & 31
		r.n -= int(e & 31)
		return int32(e) >> 16, true
	}
	s, ok := r.symbol(dc)
	return extend(r.bits(int(s&15)), int(s&15)), ok && s <= 15
}

// block decodes the other coefficients of a sequential block into b, which is zero. any
// tells whether there are some; ok is false if the bits are no code or a run leads out of
// the block.
//
// The reader's state lives in registers here: this loop is half of a decoder's time.
func (r *bitReader) block(b *[64]int16, ac *huffTable) (any, ok bool) {
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
		if e&fastSlow == 0 {
			acc <<= e & 31
			n -= int(e & 31)
			k += int(e >> 8 & 0xFF)
			b[zigzag[k&127]&63] = int16(e >> 16) // where k leads out, a zero onto a zero
			continue
		}
		sym, length := ac.symbol(acc)
		if length == 0 {
			return true, false
		}
		acc <<= length & 31
		n -= length
		size := int(sym & 15)
		if size == 0 {
			k += 15
			if sym != 0xF0 {
				k += fastEnd - 15
			}
			continue
		}
		k += int(sym >> 4)
		b[zigzag[k&127]&63] = int16(extend(uint32(acc>>(uint(64-size)&63)), size))
		acc <<= size & 31
		n -= size
	}
	r.pos, r.acc, r.n = pos, acc, n
	return k != 1+fastEnd+1, k == 64 || k > fastEnd
}
