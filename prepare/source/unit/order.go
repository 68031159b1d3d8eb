package unit

import (
	"cmp"
	"strings"
)

// Compare compares names of units: runs of digits as numbers of any size, so that demo_2 comes before demo_10, and
// other bytes by value. Names that differ only in leading zeros are compared as text, so that the order is total.
func Compare(a, b string) int {
	for x, y := a, b; ; {
		i, j := digits(x), digits(y)
		if i > 0 && j > 0 {
			m, n := strings.TrimLeft(x[:i], "0"), strings.TrimLeft(y[:j], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			x, y = x[i:], y[j:]
			continue
		}
		switch {
		case x == "" || y == "":
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
		case x[0] != y[0]:
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
}

// digits returns the number of digits at the beginning of a text.
func digits(text string) (n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}
