package column

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// Plain is a number that TakePlain has read: digits / 10^places with a sign.
type Plain struct {
	digits uint64
	places int // number of digits after the point
	Traits PlainTraits
}

// PlainTraits are the properties of a plain number from which the type of its column follows. The traits of several
// numbers are combined by OR.
type PlainTraits uint8

// Traits of a plain number.
const (
	PlainFraction PlainTraits = 1 << iota // the number has a point
	PlainNegative
	plainWide // the number is above 2^24, so float32 may not hold it exactly
	plainNone // the cell is not a plain number
)

// plainRoom is the number of bytes from the beginning of a number that TakePlain may read. Closer to the end of a
// text it reads nothing.
const plainRoom = 48

// TakePlain reads the number at the beginning of text and returns its length in bytes. The length is 0 if the
// number is not plain (whole digits, or digits on both sides of a point), is too long, or is less than plainRoom
// bytes from the end of text. Any byte but a digit may follow the number; whether it is a separator is for the
// caller to check.
func TakePlain(text string) (p Plain, end int) {
	const mostWhole, mostDigits = 15, 19 // below 2^53, and of any uint64
	if len(text) < plainRoom {
		return p, 0
	}
	if text[0] == '-' {
		p.Traits, end = PlainNegative, 1
	}
	first := end
	if text[end+1] == '.' { // as in most fractions
		if p.digits = uint64(text[end] - '0'); p.digits > 9 {
			return p, 0
		}
		end++
	} else {
		p.digits, end = takeDigits(text, end, 0)
		whole := end - first
		if whole == 0 || whole > mostWhole || text[first] == '0' && (whole > 1 || first > 0 && text[end] != '.') {
			return p, 0 // 007 is a name, and -0 differs from 0 as a float only
		}
	}
	point := end
	if text[end] == '.' {
		p.digits, end = takeDigits(text, end+1, p.digits)
		p.places = end - point - 1
		if p.places == 0 || p.places+point-first > mostDigits {
			return p, 0
		}
		p.Traits |= PlainFraction
	}
	if point-first > sureWhole && p.wide() {
		p.Traits |= plainWide
	}
	return p, end
}

// takeDigits appends the digits of text from i on to the number n, at most 24 digits, and returns where they end.
func takeDigits(text string, i int, n uint64) (uint64, int) {
	for range 3 {
		eight := binary.LittleEndian.Uint64([]byte(text[i : i+8]))
		// The bytes that are not digits:
		other := ((eight ^ zeros) | ((eight + 0x0606060606060606) ^ zeros)) & 0xf0f0f0f0f0f0f0f0
		if other == 0 {
			n, i = n*wholePowersOf10[8]+valueOf(eight), i+8
			continue
		}
		count := bits.TrailingZeros64(other) / 8
		// The digits shifted in before the word's own are 0, and do not count.
		eight = eight<<(64-8*count) | zeros>>(8*count)
		return n*wholePowersOf10[count] + valueOf(eight), i + count
	}
	return n, i
}

// wide reports whether the number is too large for float32 to hold all integers of its size.
func (p *Plain) wide() bool {
	x, _ := decimal(p.digits, p.places, 64)
	return x > 1<<24
}

// sign returns the sign bit of a float64.
func (p *Plain) sign() uint64 { return uint64(p.Traits/PlainNegative) << 63 }

// putInt writes a number without a fraction as int64. It negates by arithmetic, without a branch.
func (p *Plain) putInt(to []byte) {
	negative := uint64(p.Traits / PlainNegative & 1)
	binary.LittleEndian.PutUint64(to, (p.digits^-negative)+negative)
}

// Small returns the number, and whether it is whole, not negative and less than max.
func (p *Plain) Small(max uint64) (uint64, bool) {
	return p.digits, p.digits < max && p.Traits&(PlainFraction|PlainNegative) == 0
}

// Put writes the number as Int64, Float32 or Float64. It returns false if the type cannot hold it, or if correct
// rounding needs AppendNumber.
func (p *Plain) Put(to []byte, d tensor.DType) bool {
	if d == tensor.Int64 {
		p.putInt(to)
		return p.Traits&PlainFraction == 0
	}
	if d == tensor.Float32 {
		x, ok := decimal(p.digits, p.places, 32)
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(x))|uint32(p.sign()>>32))
		return ok
	}
	x, ok := decimal(p.digits, p.places, 64)
	binary.LittleEndian.PutUint64(to, math.Float64bits(x)|p.sign())
	return ok
}

// KnowsPlain reports whether AddPlain is enough for plain numbers: earlier cells have decided all that only Add can
// find out.
func (g *Guess) KnowsPlain() bool {
	return g.numbers && (g.notList || g.isList && g.words && slices.Equal(g.dims, []int{1}))
}

// AddPlain adds plain numbers with these combined traits. KnowsPlain must be true.
func (g *Guess) AddPlain(traits PlainTraits) {
	g.seen, g.notImage, g.notBool = true, true, true
	g.notUint = g.notUint || traits&(PlainFraction|PlainNegative) != 0
	g.wide = g.wide || traits&plainWide != 0
	if traits&PlainFraction != 0 {
		g.notInt, g.notWhole, g.floats = true, true, true
	}
}
