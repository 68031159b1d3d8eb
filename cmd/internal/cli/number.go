package cli

import (
	"strconv"
)

// Decimal formats a number with four digits after the point. Below 0.001 and from 1e7 on, where
// this form shows too few or too many digits, it uses four significant digits and perhaps an
// exponent.
func Decimal(v float64) string {
	if a := abs(v); a != 0 && (a < 0.001 || a >= 1e7) {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}

// Number formats a minimum or maximum. Most of these are whole numbers, of pixels and labels, and
// are printed without a point. The bound of 1e15 is below 2^53, so that the conversion is exact.
func Number(v float64) string {
	if v == float64(int64(v)) && abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return Decimal(v)
}
