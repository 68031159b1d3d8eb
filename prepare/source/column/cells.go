package column

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/penstock/penstock/tensor"
)

// Cells is the cells of one column in consecutive rows of a text, whose positions were found before.
type Cells struct {
	// The text, with at least CellMargin bytes before and after all cells.
	Text string
	// By row and column: the position of the separator after the cell. Ends[0] is the separator before the first
	// cell.
	Ends []uint32
	Step int // number of columns in a row
}

// CellMargin is the number of bytes around a cell that AppendPlain may read. It loads whole words, whatever is
// around the cell, which is faster than looking at the length of the cell first.
const CellMargin = 24

// At returns the position of the cell in a row.
func (c *Cells) At(row int) (begin, end int) {
	at := row * c.Step
	return int(c.Ends[at]) + 1, int(c.Ends[at+1])
}

// AppendPlain appends the numbers of the cells in rows [row, rows) to b as Int64, Float32 or Float64. It stops at
// the first cell that is not a plain number, is too long, or needs AppendNumber to round correctly, and returns the
// row of that cell and the traits of all numbers before it.
func (c *Cells) AppendPlain(b []byte, row, rows int, d tensor.DType) ([]byte, int, PlainTraits) {
	n := len(b)
	b = b[:n+(rows-row)*d.Size()]
	first, traits := row, PlainTraits(0)
	switch d {
	case tensor.Int64:
		row, traits = c.integers(b[n:], row, rows)
	case tensor.Float32:
		row, traits = c.float32s(b[n:], row, rows)
	default:
		row, traits = c.float64s(b[n:], row, rows)
	}
	return b[:n+(row-first)*d.Size()], row, traits
}

// integers is AppendPlain for int64. It stops at numbers with a point.
func (c *Cells) integers(to []byte, row, rows int) (int, PlainTraits) {
	all := PlainTraits(0)
	for ; row < rows; row++ {
		begin, end := c.At(row)
		p := takeCell(c.Text, begin, end)
		// A fraction is a plain number, but no int64: the type of the column was a guess.
		if p.Traits&(plainNone|PlainFraction) != 0 {
			break
		}
		p.putInt(to)
		to = to[8:]
		all |= p.Traits
	}
	return row, all
}

// float32s is AppendPlain for float32. The quotient is rounded twice, to float64 and to float32, which is right
// unless the float64 is at or near the middle between two float32: there it stops. See parseFloat.
func (c *Cells) float32s(to []byte, row, rows int) (int, PlainTraits) {
	const half = 1 << 28 // of the bits that a float32 does not have
	all := PlainTraits(0)
	for ; row < rows; row++ {
		begin, end := c.At(row)
		p := takeCell(c.Text, begin, end)
		x, off := float64(int64(p.digits)), uint64(0) // without a sign, converting takes a jump
		if p.digits > 1<<53 {
			x, off = float64(p.digits), 4 // see decimal; no number here is as small as 0x1p-126
		}
		x /= powersOf10[p.places]
		// low+off-half <= 2*off is low within off of half, in one unsigned comparison.
		if low := math.Float64bits(x) & (2*half - 1); p.Traits&plainNone != 0 || low+off-half <= 2*off {
			break
		}
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(x))|uint32(p.sign()>>32))
		to = to[4:]
		all |= p.Traits
	}
	return row, all
}

// float64s is AppendPlain for float64. Up to 2^53, one division is exact in both operands and rounds once; larger
// numbers take nearest.
func (c *Cells) float64s(to []byte, row, rows int) (int, PlainTraits) {
	all := PlainTraits(0)
	for ; row < rows; row++ {
		begin, end := c.At(row)
		p := takeCell(c.Text, begin, end)
		if p.Traits&plainNone != 0 {
			break
		}
		x := 0.0
		if p.digits <= 1<<53 {
			x = float64(int64(p.digits)) / powersOf10[p.places]
		} else {
			x = nearest(p.digits, p.places)
		}
		binary.LittleEndian.PutUint64(to, math.Float64bits(x)|p.sign())
		to = to[8:]
		all |= p.Traits
	}
	return row, all
}

// takeCell is TakePlain for a cell whose end is known. It returns plainNone for cells that are not plain, and for
// the rare cells with eight or more characters before a point. Eight digits are read by one operation, with no
// branch on how many of them belong to the cell: for cells of varying length such branches are mispredicted half of
// the time.
func takeCell(text string, begin, end int) (p Plain) {
	const mostWhole, mostDigits = 15, 19
	none := Plain{Traits: plainNone}
	if text[begin] == '-' {
		p.Traits = PlainNegative
	}
	// Skip the sign without a branch: the trait PlainNegative, divided by its bit, is 1 if the number has a sign.
	begin += int(p.Traits / PlainNegative)
	n := end - begin
	head := binary.LittleEndian.Uint64([]byte(text[begin : begin+8]))
	// whole is the number of characters before the point, or 8 if the first eight characters have none.
	whole, zero := pointIn(head), head&0xff == '0'
	if whole >= n || whole == 8 {
		if n < 1 || n > mostWhole || zero && (n > 1 || p.Traits != 0) {
			return none // 007 is a name, and -0 differs from 0 as a float only
		}
		var ok bool
		if p.digits, ok = digitsBefore(text, end, n); !ok {
			return none
		}
		if p.digits > 1<<24 {
			p.Traits |= plainWide
		}
		return p
	}
	p.places = n - whole - 1
	if whole == 0 || p.places == 0 || p.places+whole > mostDigits || zero && whole > 1 {
		return none
	}
	if p.digits = head&0xff - '0'; whole > 1 {
		shift := 8 * uint(whole) & 63
		var ok bool
		if p.digits, ok = numberOf(head<<(64-shift) | zeros>>shift); !ok {
			return none
		}
	} else if p.digits > 9 {
		return none
	}
	after, ok := digitsBefore(text, end, p.places)
	if !ok {
		return none
	}
	p.digits = p.digits*wholePowersOf10[p.places] + after
	p.Traits |= PlainFraction
	return p
}

// pointIn returns the position of the first point among eight characters, 8 if there is no point. It finds a zero
// byte in the exclusive or, by the usual trick of subtracting 1 from each byte.
func pointIn(eight uint64) int {
	const points, ones, highs = 0x2e2e2e2e2e2e2e2e, 0x0101010101010101, 0x8080808080808080
	x := eight ^ points
	return bits.TrailingZeros64((x-ones)&^x&highs) / 8
}

// digitsBefore returns the number in the last count bytes before end, count <= 18, and whether all these bytes
// are digits. It reads 24 bytes and replaces the bytes before the number by zeros.
func digitsBefore(text string, end, count int) (n uint64, ok bool) {
	before := text[end-24 : end]
	keep := &keepDigits[count]
	a := binary.LittleEndian.Uint64([]byte(before[8:16]))&keep[1] | zeros&^keep[1]
	b := binary.LittleEndian.Uint64([]byte(before[16:24]))&keep[2] | zeros&^keep[2]
	const high, six = 0xf0f0f0f0f0f0f0f0, 0x0606060606060606 // see numberOf
	other := ((a ^ zeros) | ((a + six) ^ zeros) | (b ^ zeros) | ((b + six) ^ zeros)) & high
	n = valueOf(a)*wholePowersOf10[8] + valueOf(b)
	if count > 16 {
		c := binary.LittleEndian.Uint64([]byte(before[:8]))&keep[0] | zeros&^keep[0]
		first, is := numberOf(c)
		return first*wholePowersOf10[16] + n, is && other == 0
	}
	return n, other == 0
}

// keepDigits[n] is a mask that keeps the last n of 24 bytes.
var keepDigits = func() (t [25][3]uint64) {
	for count := range t {
		for i := 24 - count; i < 24; i++ {
			t[count][i/8] |= 0xff << (8 * (i % 8))
		}
	}
	return t
}()
