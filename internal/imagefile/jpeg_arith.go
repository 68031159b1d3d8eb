package imagefile

// arithReader decodes the blocks of arithmetic-coded scans (T.81 annexes D, F.2.4 and G.2),
// which libjpeg reads on past the data of a scan as if zeros followed.
type arithReader struct {
	data  []byte
	pos   int
	c, a  int // the code, as far as it is not used, and the interval (D.2)
	count int // bits of c that are not used, less 8 until there are two bytes

	dc   [16][64]uint8 // states of decisions, the upper bit being the more probable symbol
	ac   [16][256]uint8
	even uint8
	low  [16]uint8 // conditioning of first coefficients (F.1.4.4.1.2): L
	high [16]uint8 // U
	kx   [16]uint8 // and of the others
}

// defaults sets the conditioning that holds without a DAC segment.
func (r *arithReader) defaults() {
	for i := range r.low {
		r.low[i], r.high[i], r.kx[i] = 0, 1, 5
	}
}

// condition reads a DAC segment (B.2.4.3).
func (r *arithReader) condition(seg []byte) error {
	for ; len(seg) >= 2; seg = seg[2:] {
		id, v := seg[0], seg[1]
		switch {
		case id < 16 && v&15 <= v>>4:
			r.low[id], r.high[id] = v&15, v>>4
		case id >= 16 && id < 32:
			r.kx[id-16] = v
		default:
			return corrupt(JPEG, "arithmetic conditioning of table %d by %d", id, v)
		}
	}
	if len(seg) > 0 {
		return corrupt(JPEG, "malformed arithmetic conditioning")
	}
	return nil
}

// start begins at data[pos], with all decisions at their first state.
func (r *arithReader) start(data []byte, pos int) {
	r.data, r.pos, r.c, r.a, r.count = data, pos, 0, 0, -16
	clear(r.dc[:])
	clear(r.ac[:])
	r.even = evenOdds
}

// next returns a byte of the code, 0 behind its end.
func (r *arithReader) next() int {
	if r.pos >= len(r.data) {
		return 0
	}
	b := r.data[r.pos]
	if b != 0xFF {
		r.pos++
		return int(b)
	}
	at := r.pos + 1
	for at < len(r.data) && r.data[at] == 0xFF {
		at++
	}
	if at < len(r.data) && r.data[at] == 0 {
		r.pos = at + 1
		return 0xFF
	}
	return 0 // pos stays at the marker
}

// bit takes a decision whose state is at st.
func (r *arithReader) bit(st *uint8) int {
	for r.a < 0x8000 {
		if r.count--; r.count < 0 {
			r.c = r.c<<8 | r.next()
			if r.count += 8; r.count < 0 {
				if r.count++; r.count == 0 {
					r.a = 0x8000
				}
			}
		}
		r.a <<= 1
	}
	s := &arithStates[*st&0x7F]
	symbol, qe := *st>>7, int(s.qe)
	r.a -= qe
	lessProbable := r.a < qe // the halves are exchanged where the smaller is the larger
	if at := r.a << r.count; r.c >= at {
		r.c -= at
		r.a = qe
		lessProbable = !lessProbable
	} else if r.a >= 0x8000 {
		return int(symbol)
	}
	if lessProbable {
		*st = (symbol^s.exchanges)<<7 | s.less
		return int(symbol ^ 1)
	}
	*st = symbol<<7 | s.more
	return int(symbol)
}

// magnitude takes the bits of a number below its highest, m, off, whose states are 14 on.
func (r *arithReader) magnitude(st *uint8, m int) int {
	v := m
	for m >>= 1; m > 0; m >>= 1 {
		if r.bit(st) == 1 {
			v |= m
		}
	}
	return v + 1
}

// difference takes the difference of a first coefficient to the one before (F.1.4.1).
func (r *arithReader) difference(c *component) (v int32, ok bool) {
	const x1 = 20
	st := &r.dc[c.dcNo]
	at := c.context
	if r.bit(&st[at]) == 0 {
		c.context = 0
		return 0, true
	}
	sign := r.bit(&st[at+1])
	at += 2 + sign
	m := r.bit(&st[at])
	if m != 0 {
		for at = x1; r.bit(&st[at]) == 1; at++ {
			if m <<= 1; m == 0x8000 {
				return 0, false
			}
		}
	}
	switch {
	case m < 1<<r.low[c.dcNo]>>1:
		c.context = 0
	case m > 1<<r.high[c.dcNo]>>1:
		c.context = 12 + 4*sign
	default:
		c.context = 4 + 4*sign
	}
	return signed(sign, r.magnitude(&st[at+14], m)), true
}

func signed(sign, v int) int32 {
	if sign == 1 {
		v = -v
	}
	return int32(v)
}

// block decodes what a scan holds of one block of c.
func (r *arithReader) block(s *progressiveScan, b *[64]int16, c *component) bool {
	switch {
	case s.first > 0 && s.refine:
		return r.refine(s, b, c)
	case s.first > 0:
		return r.coefficients(s, b, c, s.first)
	case s.refine:
		b[0] |= int16(r.bit(&r.even) << s.low)
		return true
	}
	diff, ok := r.difference(c)
	c.pred = int32(int16(c.pred + diff))
	b[0] = int16(c.pred << s.low)
	return ok && (s.last == 0 || r.coefficients(s, b, c, 1))
}

// coefficients takes those from k on.
func (r *arithReader) coefficients(s *progressiveScan, b *[64]int16, c *component, k int) bool {
	st := &r.ac[c.acNo]
	for ; k <= s.last; k++ {
		if r.bit(&st[3*(k-1)]) == 1 {
			return true // the end of the block
		}
		for r.bit(&st[3*(k-1)+1]) == 0 {
			if k++; k > s.last {
				return false
			}
		}
		sign, at := r.bit(&r.even), 3*(k-1)+2
		m := r.bit(&st[at])
		if m != 0 && r.bit(&st[at]) == 1 {
			m <<= 1
			at = 217
			if k <= int(r.kx[c.acNo]) {
				at = 189
			}
			for ; r.bit(&st[at]) == 1; at++ {
				if m <<= 1; m == 0x8000 {
					return false
				}
			}
		}
		v := signed(sign, r.magnitude(&st[(at+14)&255], m))
		b[zigzag[k]&63] = int16(v << s.low)
		*s.any = true
	}
	return true
}

// refine adds a bit to the coefficients that are set, and sets new ones.
func (r *arithReader) refine(s *progressiveScan, b *[64]int16, c *component) bool {
	st := &r.ac[c.acNo]
	end := s.last // the last that is set
	for end > 0 && b[zigzag[end]&63] == 0 {
		end--
	}
	for k := s.first; k <= s.last; k++ {
		if k > end && r.bit(&st[3*(k-1)]) == 1 {
			break
		}
		for p := &b[zigzag[k]&63]; ; p = &b[zigzag[k]&63] {
			if *p != 0 {
				r.refineOne(p, &st[3*(k-1)+2], s.low)
				break
			}
			if r.bit(&st[3*(k-1)+1]) == 1 {
				*p = int16(signed(r.bit(&r.even), 1) << s.low)
				*s.any = true
				break
			}
			if k++; k > s.last {
				return false
			}
		}
	}
	return true
}

func (r *arithReader) refineOne(p *int16, st *uint8, low int) {
	if r.bit(st) == 0 {
		return
	}
	if *p < 0 {
		*p -= 1 << low
	} else {
		*p += 1 << low
	}
}
