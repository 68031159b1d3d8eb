package cli

import (
	"strconv"
)

// Decimal writes a number with four places after the point, or in a form that shows it.
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

// Number writes a smallest or largest value, which often is a whole number.
func Number(v float64) string {
	if v == float64(int64(v)) && abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return Decimal(v)
}
