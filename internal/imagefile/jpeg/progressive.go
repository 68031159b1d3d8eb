package jpeg

import (
	"encoding/binary"
	"math/bits"
)

// progressiveScan decodes the blocks of one scan of a progressive frame (T.81 annex G). Such a scan
// brings a band of coefficients without their low bits, or one more bit of the coefficients (a
// refinement). The coefficients of the image stay in memory between the scans.
type progressiveScan struct {
	r           *bitReader
	first, last int  // the band, in zigzag order; 0 to 0 or without 0
	low         int  // Al of T.81: the bits that are missing after this scan
	refine      bool // the scan brings bit number low of coefficients that are known down to the bit above
	ended       int  // blocks from here on that the last code for an end covers
}

// blocks decodes what the scan holds of n blocks of component c, from block number at on. It
// returns false if the data makes no sense. A refinement of first coefficients is one bit a block,
// without a code.
func (s *progressiveScan) blocks(c *component, at, n int) bool {
	switch {
	case s.first == 0 && !s.refine:
		return s.dcFirst(c, at, n)
	case s.first == 0:
		for i := at; i < at+n; i++ {
			c.coefs[64*i] |= int16(s.r.bits(1) << s.low)
		}
		return true
	case !s.refine:
		return s.acFirst(c, at, n)
	}
	return s.acRefine(c, at, n)
}

// dcFirst decodes first (DC) coefficients without their low bits, which later scans bring (T.81
// G.1.2.1).
func (s *progressiveScan) dcFirst(c *component, at, n int) bool {
	for i := at; i < at+n; i++ {
		diff, ok := s.r.difference(c.dcTab)
		if !ok {
			return false
		}
		c.pred += diff
		c.coefs[64*i] = int16(c.pred << s.low)
	}
	return true
}

// endOfBand sets ended from the bits after a symbol EOBn of size log: the run of blocks that have
// no further coefficients in the band, the current block among them (T.81 G.1.2.2).
func (s *progressiveScan) endOfBand(log byte) {
	s.ended = 1<<log + int(s.r.bits(int(log)))
}

// acFirst decodes a band of coefficients of n blocks (T.81 G.1.2.2). One code can end the band of
// up to 32767 blocks, so blocks are skipped without a look at the stream.
func (s *progressiveScan) acFirst(c *component, at, n int) bool {
	for i := at; i < at+n; i++ {
		if s.ended > 0 {
			skipped := min(s.ended, at+n-i)
			s.ended -= skipped
			i += skipped - 1
			continue
		}
		if !s.block((*[64]int16)(c.coefs[64*i:]), &c.set[i], c.acTab) {
			return false
		}
	}
	return true
}

// fastLow is the largest low with which the values of fastEntry, nine bits wide, stay within 16
// bits when shifted.
const fastLow = 7

// block decodes the band of one block in a scan that is no refinement, with the same loop as
// bitReader.block. It differs by the band's end, the shift by low, and set, the bits of
// coefficients that are not 0, which later refinements need. Whatever the fast table does not hold
// is left to blockSlow, from the first coefficient that it could not place.
func (s *progressiveScan) block(b *[64]int16, set *uint64, t *huffTable) bool {
	k, last := uint8(s.first-1), uint8(s.last)
	if s.low > fastLow { // no encoder asks for so much
		return s.blockSlow(b, set, t, k)
	}
	r, found, low := s.r, *set, s.low&15
	acc, n := r.acc, r.n
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
			e := t.fast[acc>>(64-fastBits)]
			one := k + e.step()
			two := one + e.step2()
			if two < last && e != 0 {
				acc <<= e.length()
				n -= int(e.length())
				b[zigzag[two]&63] = e.value2() << low // with one coefficient two is one, and the next line overwrites this value
				b[zigzag[one]&63] = e.value() << low
				found |= 1<<(one&63) | 1<<(two&63)
				k = two
				continue
			}
			ends := e.step() == fastEnd
			if !ends && e != 0 && (two == last || e.step2() == fastEnd && one < last) {
				b[zigzag[one]&63] = e.value() << low
				found |= 1 << (one & 63)
				if two == last && two > one {
					b[zigzag[two]&63] = e.value2() << low
					found |= 1 << (two & 63)
				}
				ends = true
			}
			if ends {
				r.acc, r.n = acc<<e.length(), n-int(e.length())
				*set = found
				return true
			}
			r.acc, r.n = acc, n
			*set = found
			return s.blockSlow(b, set, t, k)
		}
	}
}

// blockSlow decodes the coefficients of a block after place k, one by one, up to the end of the
// band.
func (s *progressiveScan) blockSlow(b *[64]int16, set *uint64, t *huffTable, k uint8) bool {
	for k := int(k) + 1; k <= s.last; k++ {
		sym, ok := s.r.symbol(t)
		if !ok {
			return false
		}
		run, size := sym>>4, int(sym&15)
		switch {
		case size > 0:
			if k += int(run); k > s.last {
				return false
			}
			v := int16(extend(s.r.bits(size), size) << s.low)
			b[zigzag[k]&63] = v
			if v != 0 {
				*set |= 1 << k
			}
		case run == 15:
			k += 15
		default:
			s.endOfBand(run)
			s.ended--
			return true
		}
	}
	return true
}

// acRefine reads one more bit of the coefficients that are known, and new coefficients of
// magnitude 1 << low (T.81 G.1.2.3).
func (s *progressiveScan) acRefine(c *component, at, n int) bool {
	band := ^uint64(0) >> (63 - s.last) &^ (1<<s.first - 1)
	for i := at; i < at+n; i++ {
		b, old := (*[64]int16)(c.coefs[64*i:]), c.set[i]&band
		if s.ended == 0 {
			var ok bool
			if old, ok = s.refineBlock(b, &c.set[i], c.acTab, band); !ok {
				return false
			}
		}
		if s.ended > 0 {
			s.ended--
			if old != 0 {
				s.correct(b, old)
			}
		}
	}
	return true
}

// refineBlock decodes the codes of one block of a refinement. A code says how many coefficients
// that are still 0 to pass over, and whether the one after them is new; each coefficient passed
// that is not 0 has a bit of its own in between. Places are kept as sets of bits, so that passing
// over is a count of bits. It returns the known coefficients behind the last code, which acRefine
// corrects when the band has ended.
func (s *progressiveScan) refineBlock(b *[64]int16, set *uint64, t *huffTable, band uint64) (rest uint64, ok bool) {
	r := s.r
	old := *set & band
	free := band &^ *set // places of zeros, where new coefficients may be
	for old|free != 0 {
		if r.n < 32 {
			r.fill()
		}
		sym, length := t.symbol(r.acc)
		if length == 0 {
			return 0, false
		}
		r.acc <<= length
		r.n -= length
		if place := free & -free; sym == 1 && place-1 < old&-old-1 { // a new one comes next: the most common code
			b[zigzag[bits.TrailingZeros64(place)]&63] = s.signed()
			*set |= place
			free &^= place
			continue
		}
		run, isNew := int(sym>>4), sym&15 != 0
		switch {
		case sym&15 > 1:
			return 0, false
		case !isNew && run < 15:
			s.endOfBand(byte(run))
			return old, true
		}
		var v int16
		if isNew {
			v = s.signed()
		}
		for ; run > 0; run-- {
			free &= free - 1
		}
		if isNew && free == 0 {
			return 0, false
		}
		place := free & -free
		passed := old & (place - 1) // all of them if no place is left, as place - 1 is then all ones
		if passed != 0 {
			s.correct(b, passed)
		}
		if isNew {
			b[zigzag[bits.TrailingZeros64(place)]&63] = v
			*set |= place
		}
		if place == 0 {
			return 0, true
		}
		free &^= place
		old &^= passed
	}
	return 0, true
}

// signed reads the sign of a new coefficient and returns its value. acc still has bits, as a code
// takes at most 16 of the 32 that were there.
func (s *progressiveScan) signed() int16 {
	r := s.r
	negative := int16(r.acc>>63) - 1 // -1 if the bit is 0
	r.acc <<= 1
	r.n--
	return (1<<s.low ^ negative) - negative
}

// correct reads one bit for each coefficient in the set which, and adds 1 << low to the magnitudes
// of the coefficients whose bit is 1.
func (s *progressiveScan) correct(b *[64]int16, which uint64) {
	r, low := s.r, s.low&15
	acc, n := r.acc, r.n
	for ; which != 0; which &= which - 1 {
		if n == 0 {
			r.acc, r.n = acc, n
			r.fill()
			acc, n = r.acc, r.n
		}
		p := &b[zigzag[bits.TrailingZeros64(which)]&63]
		v := *p
		sign := v >> 15
		one := int16(acc>>63) &^ (v >> low) // 0 where the magnitude has the bit already, as libjpeg has it for corrupt data
		*p = v + (one<<low ^ sign) - sign
		acc <<= 1
		n--
	}
	r.acc, r.n = acc, n
}
