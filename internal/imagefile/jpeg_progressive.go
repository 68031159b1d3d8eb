package imagefile

// progressiveScan decodes the blocks of one scan of a progressive frame (T.81 annex G).
type progressiveScan struct {
	r              *bitReader
	first, last    int // coefficients, in zigzag order
	low            int // point transform: bits still missing
	refine         bool
	endOfBandRun   int
	dcTable, table *huffTable // of the current component
	any            *bool      // whether the current block has more than a first coefficient
}

// block decodes what this scan holds of one block. pred is the component's last first
// coefficient. It returns false if the data makes no sense.
func (s *progressiveScan) block(b *[64]int16, pred *int32) bool {
	switch {
	case s.first == 0 && !s.refine:
		return s.dcFirst(b, pred)
	case s.first == 0:
		b[0] |= int16(s.r.bits(1) << s.low)
		return true
	case !s.refine:
		return s.acFirst(b)
	}
	return s.acRefine(b)
}

func (s *progressiveScan) dcFirst(b *[64]int16, pred *int32) bool {
	size, ok := s.r.symbol(s.dcTable)
	if !ok || size > 15 {
		return false
	}
	*pred += extend(s.r.bits(int(size)), int(size))
	b[0] = int16(*pred << s.low)
	return true
}

// endOfBand takes the length of a run of blocks without further coefficients off the
// stream; the current block is the first of them.
func (s *progressiveScan) endOfBand(log byte) {
	s.endOfBandRun = 1<<log + int(s.r.bits(int(log)))
}

func (s *progressiveScan) acFirst(b *[64]int16) bool {
	if s.endOfBandRun > 0 {
		s.endOfBandRun--
		return true
	}
	for k := s.first; k <= s.last; k++ {
		sym, ok := s.r.symbol(s.table)
		if !ok {
			return false
		}
		run, size := sym>>4, int(sym&15)
		switch {
		case size > 0:
			if k += int(run); k > s.last {
				return false
			}
			b[zigzag[k]&63] = int16(extend(s.r.bits(size), size) << s.low)
			*s.any = true
		case run == 15:
			k += 15
		default:
			s.endOfBand(run)
			s.endOfBandRun--
			return true
		}
	}
	return true
}

// acRefine adds a bit to the coefficients that are set, and sets new ones (T.81 G.1.2.3).
func (s *progressiveScan) acRefine(b *[64]int16) bool {
	k := s.first
	for s.endOfBandRun == 0 && k <= s.last {
		sym, ok := s.r.symbol(s.table)
		if !ok {
			return false
		}
		run, v := int(sym>>4), int16(0)
		switch sym & 15 {
		case 0:
			if run < 15 {
				s.endOfBand(byte(run))
				continue
			}
		case 1:
			v = s.newValue()
		default:
			return false
		}
		k = s.refineRun(b, k, run)
		if v != 0 {
			if k > s.last {
				return false
			}
			b[zigzag[k]&63] = v
			*s.any = true
		}
		k++
	}
	if s.endOfBandRun > 0 {
		s.refineRun(b, k, 64)
		s.endOfBandRun--
	}
	return true
}

func (s *progressiveScan) newValue() int16 {
	if s.r.bits(1) == 1 {
		return 1 << s.low
	}
	return -1 << s.low
}

// refineRun refines the set coefficients from k on, until it has passed zeros unset ones
// and meets another, whose place it returns, or the band ends.
func (s *progressiveScan) refineRun(b *[64]int16, k, zeros int) int {
	if !*s.any {
		return min(k+zeros, s.last+1)
	}
	r := s.r
	acc, n := r.acc, r.n
	for ; k <= s.last; k++ {
		p := &b[zigzag[k&127]&63]
		v := *p
		if v == 0 {
			if zeros == 0 {
				break
			}
			zeros--
			continue
		}
		if n == 0 {
			r.acc, r.n = acc, n
			r.fill()
			acc, n = r.acc, r.n
		}
		// A one is added to the magnitude, unless it is there already.
		sign := v >> 15
		one := int16(acc>>63) &^ (v >> (s.low & 15))
		*p = v + (one<<(s.low&15) ^ sign) - sign
		acc <<= 1
		n--
	}
	r.acc, r.n = acc, n
	return k
}
