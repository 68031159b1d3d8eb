package kernel

import "encoding/binary"

// MarkBytes sets bit i of the words of dst if text[i] is c, and clears it otherwise; bit 0 is the lowest bit of the
// first word. It sets as many words as text has bytes, divided by 64 and rounded up, and dst must have room for them.
func MarkBytes(dst []uint64, text string, c byte) {
	dst = dst[:(len(text)+63)/64]
	n := markFast(dst, text, c)
	dst, text = dst[n:], text[64*n:]
	for i := range dst {
		dst[i] = markBytes(text[64*i:min(64*i+64, len(text))], c)
	}
}

// markBytes marks at most 64 bytes.
func markBytes(text string, c byte) (marks uint64) {
	const (
		ones = 0x0101010101010101
		low7 = 0x7f7f7f7f7f7f7f7f
	)
	i := 0
	for ; i+8 <= len(text); i += 8 {
		x := binary.LittleEndian.Uint64([]byte(text[i:i+8])) ^ ones*uint64(c) // zero bytes where text has c
		x = ^((x&low7 + low7) | x | low7) >> 7                                // 1 there, 0 in others
		marks |= x * 0x0102040810204080 >> 56 << i                            // the eight in the highest byte
	}
	for ; i < len(text); i++ {
		if text[i] == c {
			marks |= 1 << i
		}
	}
	return marks
}
