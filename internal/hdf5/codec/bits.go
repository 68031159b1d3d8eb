package codec

import "encoding/binary"

// bitReader takes numbers out of a stream of bits, the highest first. Behind the end are zeros, and over
// says that some of them were taken.
type bitReader struct {
	src []byte
	at  int // bit
}

func (r *bitReader) over() bool { return r.at > 8*len(r.src) }

// next takes a number of n bits, at most 64.
func (r *bitReader) next(n int) uint64 {
	if n == 0 {
		return 0
	}
	if n > 32 {
		high := r.next(n - 32)
		return high<<32 | r.next(32)
	}
	x := r.word() >> (64 - n)
	r.at += n
	return x
}

// word returns the next 57 bits or more, the first one highest.
func (r *bitReader) word() (x uint64) {
	i := r.at >> 3
	if i+8 <= len(r.src) {
		x = binary.BigEndian.Uint64(r.src[i:])
	} else {
		for k := range 8 {
			x <<= 8
			if i+k < len(r.src) {
				x |= uint64(r.src[i+k])
			}
		}
	}
	return x << (r.at & 7)
}
