package stream

import "encoding/binary"

// Bytes that the fast loop needs, as it does not check for the end: two loads of 8 bytes of input, and four literals
// and the longest copy, rounded up to whole words, of output.
const (
	roomIn  = 16
	roomOut = 4 + 258 + 8
)

// symbols decodes literals and copies up to the end of a block.
func (f *flate) symbols() error {
	for {
		if len(f.in)-f.at >= roomIn && len(f.out)-f.done >= roomOut {
			if end, err := f.fast(); end || err != nil {
				return err
			}
		}
		if end, err := f.slow(); end || err != nil {
			return err
		}
	}
}

// slow decodes one symbol near the end of in or out, with all checks.
func (f *flate) slow() (end bool, err error) {
	f.need()
	e := f.lit[f.buf&(1<<litBits-1)]
	if e&isSubtable != 0 {
		f.drop(litBits)
		e = f.lit[e>>16+uint32(f.buf)&(1<<(e>>8&15)-1)]
	}
	switch {
	case e&isLiteral != 0:
		f.drop(uint(e & codeMask))
		if f.cut() {
			return false, errCut
		}
		if f.done == len(f.out) {
			return false, errMore
		}
		f.out[f.done] = byte(e >> 16)
		f.done++
		return false, nil
	case e&isRest == 0:
		return false, f.slowCopy(e)
	case e&isEnd == 0:
		return false, errCode
	}
	f.drop(uint(e & codeMask))
	if f.cut() {
		return false, errCut
	}
	return true, nil
}

// value adds the extra bits after a code to its base.
func value(e uint32, buf uint64) int {
	return int(e>>16) + int(uint32(buf)&(1<<(e&codeMask)-1)>>(e>>8&15))
}

// slowCopy decodes the distance that follows a length, and copies.
func (f *flate) slowCopy(e uint32) error {
	n := value(e, f.buf)
	f.drop(uint(e & codeMask))
	f.need()
	d := f.dist[f.buf&(1<<distBits-1)]
	if d&isSubtable != 0 {
		f.drop(distBits)
		d = f.dist[d>>16+uint32(f.buf)&(1<<(d>>8&15)-1)]
	}
	if d&isRest != 0 {
		return errCode
	}
	back := value(d, f.buf)
	f.drop(uint(d & codeMask))
	switch {
	case f.cut():
		return errCut
	case back > f.done:
		return errDistance
	case n > len(f.out)-f.done:
		return errMore
	}
	CopyBack(f.out, f.done, back, n)
	f.done += n
	return nil
}

// fast decodes while in and out have room, so that no symbol needs to check for their ends.
func (f *flate) fast() (end bool, err error) {
	in, out, at, done, buf, bits := f.in, f.out, f.at, f.done, f.buf, f.bits
	lit, dist := &f.lit, &f.dist
	lastIn, lastOut := len(in)-roomIn, len(out)-roomOut
	// An entry is looked up before the load that its block of literals begins with, so that
	// the look-up and the load run at the same time: the 8 bytes of a load leave more bits
	// than one entry needs.
	buf |= binary.LittleEndian.Uint64(in[at:]) << (bits & 63)
	at += int(63-bits) >> 3
	bits |= 56 // now 56 to 63
	e := lit[buf&(1<<litBits-1)]
loop:
	for at <= lastIn && done <= lastOut {
		buf |= binary.LittleEndian.Uint64(in[at:]) << (bits & 63)
		at += int(63-bits) >> 3
		bits |= 56
		// Four literals take at most 44 bits of them.
		if e&isLiteral != 0 {
			buf >>= e & codeMask
			bits -= uint(e & codeMask)
			out[done] = byte(e >> 16)
			done++
			if e = lit[buf&(1<<litBits-1)]; e&isLiteral != 0 {
				buf >>= e & codeMask
				bits -= uint(e & codeMask)
				out[done] = byte(e >> 16)
				done++
				if e = lit[buf&(1<<litBits-1)]; e&isLiteral != 0 {
					buf >>= e & codeMask
					bits -= uint(e & codeMask)
					out[done] = byte(e >> 16)
					done++
					if e = lit[buf&(1<<litBits-1)]; e&isLiteral != 0 {
						buf >>= e & codeMask
						bits -= uint(e & codeMask)
						out[done] = byte(e >> 16)
						done++
						e = lit[buf&(1<<litBits-1)]
						continue
					}
				}
			}
		}
		// 23 bits are left at least; a length takes 20.
		if e&isRest != 0 {
			if e&isSubtable != 0 {
				buf >>= litBits
				bits -= litBits
				e = lit[e>>16+uint32(buf)&(1<<(e>>8&15)-1)]
				if e&isLiteral != 0 {
					buf >>= e & codeMask
					bits -= uint(e & codeMask)
					out[done] = byte(e >> 16)
					done++
					e = lit[buf&(1<<litBits-1)]
					continue
				}
			}
			if e&isRest != 0 {
				if end = e&isEnd != 0; end {
					buf >>= e & codeMask
					bits -= uint(e & codeMask)
				} else {
					err = errCode
				}
				break loop
			}
		}
		n := int(e>>16) + int(uint32(buf)&(1<<(e&codeMask)-1)>>(e>>8&15))
		buf >>= e & codeMask
		bits -= uint(e & codeMask)
		buf |= binary.LittleEndian.Uint64(in[at:]) << (bits & 63)
		at += int(63-bits) >> 3
		bits |= 56
		d := dist[buf&(1<<distBits-1)]
		if d&isRest != 0 {
			if d&isSubtable == 0 {
				err = errCode
				break loop
			}
			buf >>= distBits
			bits -= distBits
			if d = dist[d>>16+uint32(buf)&(1<<(d>>8&15)-1)]; d&isRest != 0 {
				err = errCode
				break loop
			}
		}
		back := int(d>>16) + int(uint32(buf)&(1<<(d&codeMask)-1)>>(d>>8&15))
		buf >>= d & codeMask
		bits -= uint(d & codeMask)
		if back > done {
			err = errDistance
			break loop
		}
		e = lit[buf&(1<<litBits-1)]
		copyWords(out, done, back, n)
		done += n
	}
	f.at, f.done, f.buf, f.bits = at, done, buf, bits
	return end, err
}

// copyWords is CopyBack for a place where up to 7 bytes after the copy may be overwritten.
func copyWords(out []byte, at, back, n int) {
	dst, src := out[at:at+n+7], out[at-back:]
	if back < 8 {
		if back == 1 {
			v := uint64(src[0]) * 0x0101010101010101
			for i := 0; i < n; i += 8 {
				binary.LittleEndian.PutUint64(dst[i:], v)
			}
			return
		}
		for i := range n {
			dst[i] = src[i]
		}
		return
	}
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:]))
	}
}

// CopyBack copies n bytes from back bytes before at. An overlapping copy goes byte by byte, which repeats the bytes.
func CopyBack(dst []byte, at, back, n int) {
	if back >= n {
		copy(dst[at:at+n], dst[at-back:])
		return
	}
	for i := at; i < at+n; i++ {
		dst[i] = dst[i-back]
	}
}
