package column

import (
	"math"
	"strconv"
)

// powersOf10 are those that a float64 has exactly.
var powersOf10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseFloat is strconv.ParseFloat, and takes a third of its time for the decimals of most tables: up to 15 digits
// without an exponent. Those digits and the power of ten are exact as float64, so that one division rounds once
// (Clinger, How to read floating point numbers accurately, 1990). Rounded again to 32 bits the result is right too,
// unless it is half-way between two of those.
func parseFloat(word string, bits int) (float64, error) {
	const maxDigits = 19 // of any uint64
	var n uint64
	digits, point := 0, -1
	i := 0
	if word != "" && (word[0] == '-' || word[0] == '+') {
		i = 1
	}
	for ; i < len(word); i++ {
		c := word[i] - '0'
		switch {
		case c <= 9:
			n = n*10 + uint64(c)
			digits++
		case word[i] == '.' && point < 0:
			point = digits
		default:
			return strconv.ParseFloat(word, bits)
		}
	}
	if digits == 0 || digits > maxDigits || n > 1<<53 {
		return strconv.ParseFloat(word, bits)
	}
	x := float64(n)
	if point >= 0 {
		x /= powersOf10[digits-point]
	}
	if bits == 32 && n != 0 {
		const low = 1<<29 - 1 // bits that a float32 does not have
		if x < 0x1p-126 || math.Float64bits(x)&low == 1<<28 {
			return strconv.ParseFloat(word, bits)
		}
		x = float64(float32(x))
	}
	if word[0] == '-' {
		x = -x
	}
	return x, nil
}
