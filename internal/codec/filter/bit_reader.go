package filter

import "encoding/binary"

// BitReader reads numbers from a stream of bits, the highest bit first. After the end it returns zeros, and Over
// reports that: decoders check once after a run of numbers, and not for each.
type BitReader struct {
	Src []byte
	at  int // bit
}

// Over reports whether bits after the end were read.
func (r *BitReader) Over() bool { return r.at > 8*len(r.Src) }

// Next reads a number of n bits, at most 64.
func (r *BitReader) Next(n int) uint64 {
	if n == 0 {
		return 0
	}
	if n > 32 {
		high := r.Next(n - 32)
		return high<<32 | r.Next(32)
	}
	x := r.Word() >> (64 - n)
	r.at += n
	return x
}

// Word returns the next 57 bits or more without consuming them. The first bit is the highest.
func (r *BitReader) Word() (x uint64) {
	i := r.at >> 3
	if i+8 <= len(r.Src) {
		x = binary.BigEndian.Uint64(r.Src[i:])
	} else {
		for k := range 8 {
			x <<= 8
			if i+k < len(r.Src) {
				x |= uint64(r.Src[i+k])
			}
		}
	}
	return x << (r.at & 7)
}

// Skip consumes n bits.
func (r *BitReader) Skip(n int) { r.at += n }
