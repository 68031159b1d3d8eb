package imagefile

import "encoding/binary"

// zigzag gives the place in a block, by rows, of the k-th coefficient (T.81 figure A.6).
// A run that leads out of the block ends at its first place, which is filled last.
var zigzag = makeZigzag()

func makeZigzag() (z [256]uint8) {
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
	return z
}

// difference decodes the first coefficient of a sequential block, less the one of the block
// before. It returns false if the bits are not a code.
func (r *bitReader) difference(dc *huffTable) (int32, bool) {
	if r.n < 32 {
		r.fill()
	}
	if e := dc.fast[r.acc>>(64-fastBits)]; e != 0 {
		r.acc <<= e.length()
		r.n -= int(e.length())
		return int32(e.value()), true
	}
	s, ok := r.symbol(dc)
	return extend(r.bits(int(s&15)), int(s&15)), ok && s <= 15
}

// block decodes the other coefficients of a sequential block into b, which is zero; it may
// change b[0], which is for the caller to set. any reports whether there are some; ok is false if the bits are not a code or a run leads out of
// the block.
//
// This loop is two thirds of a decoder's time: the reader's state lives in registers, and
// bits are fetched for five entries at once, since a branch on how many are left would be
// guessed wrong every few entries.
func (r *bitReader) block(b *[64]int16, ac *huffTable) (any, ok bool) {
	acc, n := r.acc, r.n
	k := uint8(0) // the last coefficient so far
	for {
		if p := r.pos; p+8 <= len(r.data) {
			w := binary.BigEndian.Uint64(r.data[p:])
			if hasFF(w) {
				goto slowFill
			}
			acc |= w >> (n & 63)
			r.pos = p + (63-n)>>3
			n |= 56
			goto filled
		}
	slowFill:
		r.acc, r.n = acc, n
		r.fill()
		acc, n = r.acc, r.n
	filled:
		for range 5 {
			e, before := ac.fast[acc>>(64-fastBits)], acc
			if e == 0 {
				r.acc, r.n = acc, n
				if k, ok = r.long(b, ac, k); !ok || k >= 63 {
					return true, ok && (k == 63 || k == longEnd)
				}
				acc, n = r.acc, r.n
				break
			}
			acc <<= e.length()
			n -= int(e.length())
			k += e.step()
			last := k + e.step2()
			b[zigzag[last]&63] = e.value2() // where last is k, the next line puts it right
			b[zigzag[k]&63] = e.value()
			if last >= 63 {
				r.acc, r.n = acc, n
				return r.ended(e, before, ac, k, last)
			}
			k = last
		}
	}
}

// ended finishes a block whose entry e, found in the bits before, led from its first to its
// second coefficient, k and last, the 63rd or beyond.
func (r *bitReader) ended(e fastEntry, before uint64, ac *huffTable, k, last uint8) (any, ok bool) {
	if k == 63 && last > k { // the second is of the next block
		r.again(before, e, ac)
		return true, true
	}
	if e.ends() {
		return last > fastEnd, last < 2*fastEnd
	}
	return true, last == 63
}

// again puts the second coefficient of e back; acc held both.
func (r *bitReader) again(acc uint64, e fastEntry, t *huffTable) {
	sym, length := t.symbol(acc)
	length += int(sym & 15)
	r.acc = acc << length
	r.n += int(e.length()) - length
}

// longEnd is what long returns for the end of a block.
const longEnd = 255

// long decodes one coefficient after k, or the end, for which the fast table is too small.
func (r *bitReader) long(b *[64]int16, ac *huffTable, k uint8) (last uint8, ok bool) {
	sym, ok := r.symbol(ac)
	size := int(sym & 15)
	if size == 0 && sym != 0xF0 {
		return longEnd, ok
	}
	k += sym>>4 + 1
	b[zigzag[k]&63] = int16(extend(r.bits(size), size))
	return k, ok
}
