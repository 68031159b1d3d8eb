package column

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// powersOf10 are the powers of ten that float64 represents exactly.
var powersOf10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseFloat is strconv.ParseFloat for the decimal notation of tables: hexadecimal floats and the underscores of
// Go's syntax are errors (1_23 is a name). For up to 19 digits without an exponent, which most tables have, it
// takes a third of the time of strconv.
//
// Digits below 2^53 and the power of ten are exact as float64, so their division rounds only once (Clinger, How to
// read floating point numbers accurately, 1990). Rounding the quotient again to float32 is right, too, unless it is
// half-way between two float32 values. More digits are rounded once before the division, which makes the float64 at
// most two units in the last place wrong; the float32 is then right unless the quotient is near the half-way point.
// The doubtful cases take strconv.
func parseFloat(word string, size int) (float64, error) {
	const maxDigits = 19 // of any uint64
	var n, sign uint64
	digits, point := 0, -1
	i := 0
	if word != "" { // without jumps, which would be predicted wrongly for half of the words
		if word[0] == '-' {
			i, sign = 1, 1<<63
		}
		if word[0] == '+' {
			i = 1
		}
	}
	for ; i < len(word); i++ {
		c := word[i] - '0'
		switch {
		case c <= 9:
			n = n*10 + uint64(c)
			digits++
		case word[i] == '.' && point < 0:
			point = digits
			// The digits after the point are mostly the rest of the word, and are read eight at a time from its
			// end.
			rest := len(word) - (i + 1)
			if rest > 16 && rest <= 24 {
				if d, ok := EightDigits(word[i+1:]); ok {
					n, digits, i, rest = n*wholePowersOf10[8]+d, digits+8, i+8, rest-8
				}
			}
			if rest <= 16 && len(word) >= 8 {
				if d, ok := lastDigits(word, rest); ok {
					n, digits, i = n*wholePowersOf10[rest]+d, digits+rest, len(word)
				}
			}
		default:
			return parseDecimal(word, size)
		}
	}
	if digits == 0 || digits > maxDigits {
		return parseDecimal(word, size)
	}
	places := 0
	if point >= 0 {
		places = digits - point
	}
	x, ok := decimal(n, places, size)
	if !ok {
		return parseDecimal(word, size)
	}
	return math.Float64frombits(math.Float64bits(x) | sign), nil
}

// decimal returns the float of size bits that is nearest to n / 10^places, places <= 19. ok is false if a slower
// method must decide.
func decimal(n uint64, places, size int) (x float64, ok bool) {
	off := uint64(0)
	switch {
	case n <= 1<<53:
		x = float64(int64(n)) / powersOf10[places] // without a sign, converting takes a jump
	case size == 64:
		return nearest(n, places), true
	default:
		x, off = float64(n)/powersOf10[places], 4
	}
	if size == 32 && n != 0 {
		const half = 1 << 28 // of the bits that a float32 does not have
		if low := math.Float64bits(x) & (2*half - 1); x < 0x1p-126 || low+off >= half && low <= half+off {
			return 0, false
		}
		x = float64(float32(x))
	}
	return x, true
}

// nearest returns the float64 that is nearest to n / 10^places, for n > 0 and places <= 19. It multiplies by the
// first 64 bits of the reciprocal, and falls back to a division for the few numbers where these bits do not decide
// the rounding (Eisel-Lemire: Lemire, Number parsing at a gigabyte per second, 2021; strconv has the same method).
func nearest(n uint64, places int) float64 {
	const bias, fraction, rest = 1023, 52, 1<<9 - 1
	up := bits.LeadingZeros64(n)
	by := &inversePowersOf10[places]
	high, low := bits.Mul64(n<<up, by.bits)
	// The product is up to n<<up too small, and is to be rounded to its first 54 bits, and these to 53.
	if high&rest == rest && low+n<<up < low || low == 0 && high&rest == 0 {
		return quotient(n, wholePowersOf10[places])
	}
	top := high >> 63
	m := high >> (top + 9)
	m = (m + m&1) >> 1 // 1<<53 is one more in the exponent, as it should be
	exponent := uint64(by.exponent-up) + top
	return math.Float64frombits((exponent+bias)<<fraction + m - 1<<fraction)
}

// inversePowersOf10[i] is 10^-i as bits * 2^(exponent-126), with the highest bit of bits set, rounded down.
var inversePowersOf10 = func() (t [20]struct {
	bits     uint64
	exponent int
}) {
	for i, d := range wholePowersOf10 {
		t[i].bits, t[i].exponent = 1<<63, 63
		if up := bits.LeadingZeros64(d); i > 0 {
			t[i].bits, _ = bits.Div64(1<<63, 0, d<<up) // no power is one of 2
			t[i].exponent = up - 1
		}
	}
	return t
}()

// quotient returns the float64 that is nearest to n / d, for n, d > 0.
func quotient(n, d uint64) float64 {
	up, down := bits.LeadingZeros64(n), bits.LeadingZeros64(d)
	n, d = n<<up, d<<down
	exponent := down - up - 64
	high, low := n, uint64(0)
	if n >= d { // the quotient would have 65 bits
		high, low, exponent = n>>1, n<<63, exponent+1
	}
	q, rest := bits.Div64(high, low, d) // q has 64 bits
	if rest != 0 {
		q |= 1 // below all bits that a float64 has room for, so it only breaks ties
	}
	// Ldexp for an exponent whose power of 2 is a normal float64. The product is normal, too: both are far from the
	// limits of float64.
	const bias, fraction = 1023, 52
	return float64(q) * math.Float64frombits(uint64(bias+exponent)<<fraction)
}

// parseDecimal is parseFloat for any word, by strconv.
func parseDecimal(word string, size int) (float64, error) {
	if strings.ContainsAny(word, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(word, size)
}

// wholePowersOf10 are the powers of ten that fit in a uint64.
var wholePowersOf10 = [...]uint64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16, 1e17, 1e18, 1e19}

// lastDigits returns the number in the last count bytes of word, and whether all these bytes are digits. count
// is at most 16, and word has at least eight bytes.
func lastDigits(word string, count int) (n uint64, ok bool) {
	if count > 8 {
		first, ok := EightDigits(word[len(word)-count:])
		if !ok {
			return 0, false
		}
		n, count = first*wholePowersOf10[count-8], count-8
	}
	eight := binary.LittleEndian.Uint64([]byte(word[len(word)-8:]))
	before := uint64(1)<<(8*(8-count)) - 1 // the bytes before those that count
	last, ok := numberOf(eight&^before | zeros&before)
	return n + last, ok
}

// zeros is "00000000" as a little-endian word.
const zeros = 0x3030303030303030

// allDigits reports whether text consists of digits only.
func allDigits(text string) bool {
	for ; len(text) >= 8; text = text[8:] {
		if _, ok := EightDigits(text); !ok {
			return false
		}
	}
	for i := range len(text) {
		if text[i]-'0' > 9 {
			return false
		}
	}
	return true
}

// EightDigits returns the number in the first eight bytes of text, and whether all eight bytes are digits. It
// returns false for a shorter text.
func EightDigits(text string) (n uint64, ok bool) {
	if len(text) < 8 {
		return 0, false
	}
	return numberOf(binary.LittleEndian.Uint64([]byte(text[:8])))
}

// numberOf returns the number of eight ASCII digits, the first one in the lowest byte, and whether all bytes are
// digits. It tests all bytes at once: a digit has the high nibble 3, also after 6 was added (Lemire, Number parsing
// at a gigabyte per second, 2021).
func numberOf(eight uint64) (n uint64, ok bool) {
	const high = 0xf0f0f0f0f0f0f0f0
	if eight&high != zeros || (eight+0x0606060606060606)&high != zeros {
		return 0, false
	}
	return valueOf(eight), true
}

// valueOf returns the number of eight ASCII digits, the first one in the lowest byte. It combines neighbors to
// pairs, and the four pairs by two multiplications.
func valueOf(eight uint64) uint64 {
	const pairs = 0x000000ff000000ff
	eight -= zeros
	eight = eight*10 + eight>>8 // pairs of digits, in every second byte
	return ((eight&pairs)*(100+1_000_000<<32) + (eight>>16&pairs)*(1+10_000<<32)) >> 32
}
