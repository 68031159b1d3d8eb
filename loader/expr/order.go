package expr

import "math"

// relation is a comparison as a table: whether it holds for each order of two values. NaN is
// unordered.
type relation [4]bool

const (
	below = iota
	equal
	above
	unordered
)

var relations = map[string]relation{
	"=": {equal: true}, "!=": {below: true, above: true, unordered: true},
	"<": {below: true}, "<=": {below: true, equal: true}, ">": {above: true}, ">=": {above: true, equal: true},
}

func flipped(order uint8) uint8 {
	switch order {
	case below:
		return above
	case above:
		return below
	}
	return order
}

func orderIntegers(x, y int64, ux, uy bool) uint8 {
	largeX, largeY := ux && x < 0, uy && y < 0 // 2^63 and more
	switch {
	case x == y && largeX == largeY:
		return equal
	case largeX != largeY && largeY, largeX == largeY && x < y:
		return below
	}
	return above
}

// orderFloat returns the exact order of an integer and a float.
func orderFloat(x int64, unsigned bool, f float64) uint8 {
	switch {
	case f != f:
		return unordered
	case f >= 1<<64 || f >= 1<<63 && !(unsigned && x < 0):
		return below
	case f < -1<<63:
		return above
	}
	whole := math.Trunc(f)
	var y int64
	large := f >= 1<<63
	if large {
		y = int64(uint64(whole))
	} else {
		y = int64(whole)
	}
	order := orderIntegers(x, y, unsigned, large)
	switch {
	case order != equal || f == whole:
		return order
	case f > whole:
		return below
	}
	return above
}
