package jpeg

import (
	"encoding/binary"
	"math/bits"
)

// progressiveScan decodes the blocks of one scan of a progressive frame (T.81 annex G).
type progressiveScan struct {
	r           *bitReader
	first, last int // coefficients, in zigzag order
	low         int // point transform: bits still missing
	refine      bool
	ended       int // blocks to come that have no further coefficients
}

// blocks decodes what the scan holds of n blocks of a component, from number at on. It returns
// false if the data makes no sense.
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

// dcFirst decodes first coefficients, without their low bits, which later scans bring (ITU T.81, G.1.2.1).
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

// endOfBand takes the length of a run of blocks without further coefficients off the
// stream; the current block is the first of them.
func (s *progressiveScan) endOfBand(log byte) {
	s.ended = 1<<log + int(s.r.bits(int(log)))
}

// acFirst decodes a band of coefficients of n blocks (ITU T.81, G.1.2.2). A code can end the band of up to 32767 blocks
// at once, so blocks are skipped without a look at the stream.
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

// fastLow is the most bits by which the values of the fast table can be shifted in 16.
const fastLow = 7

// block decodes the coefficients of one block of a first scan, as bitReader.block does for a sequential scan.
func (s *progressiveScan) block(b *[64]int16, set *uint64, t *huffTable) bool {
	k, last := uint8(s.first-1), uint8(s.last)
	if s.low > fastLow { // no encoder asks for it
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
				b[zigzag[two]&63] = e.value2() << low // where two is one, the next line puts it right
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

// blockSlow decodes the coefficients after k, one by one.
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

// acRefine adds a bit to the coefficients that are set, and sets new ones (T.81 G.1.2.3).
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

// refineBlock refines a block up to its last new coefficient. It returns those that were set
// before and are still to be refined.
func (s *progressiveScan) refineBlock(b *[64]int16, set *uint64, t *huffTable, band uint64) (rest uint64, ok bool) {
	r := s.r
	old := *set & band
	free := band &^ *set // where new ones may be
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
		if place := free & -free; sym == 1 && place-1 < old&-old-1 { // the next place, with nothing set before it
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
		passed := old & (place - 1) // all where there is no place
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

// signed reads the sign of a new coefficient; bits are left since its code.
func (s *progressiveScan) signed() int16 {
	r := s.r
	negative := int16(r.acc>>63) - 1 // -1 if the bit is 0
	r.acc <<= 1
	r.n--
	return (1<<s.low ^ negative) - negative
}

// correct reads a bit for each coefficient of which, by their places, and adds those that are one
// to the magnitudes.
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
		one := int16(acc>>63) &^ (v >> low) // unless it is set already
		*p = v + (one<<low ^ sign) - sign
		acc <<= 1
		n--
	}
	r.acc, r.n = acc, n
}
