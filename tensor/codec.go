package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Number is the value of an element of any type: an integer from -2^63 to 2^64-1, or a float64. A Number holds
// every value of every type exactly, except a NaN, of which a Number keeps only the upper bits.
type Number struct {
	float    bool
	negative bool   // of an integer
	bits     uint64 // the magnitude of an integer, or the bits of a float64
}

// Int returns an integer.
func Int(n int64) Number {
	if n < 0 {
		return Number{negative: true, bits: -uint64(n)}
	}
	return Number{bits: uint64(n)}
}

// Uint returns an integer that is not negative.
func Uint(n uint64) Number { return Number{bits: n} }

// Float returns a float.
func Float(x float64) Number { return Number{float: true, bits: math.Float64bits(x)} }

// notDecimal are the characters of Go's syntax of numbers that data do not have: 1_23 is a name.
const notDecimal = "_xX"

// Float64 returns the nearest float64: integers beyond 2^53 are rounded.
func (n Number) Float64() float64 {
	switch {
	case n.float:
		return math.Float64frombits(n.bits)
	case n.negative:
		return -float64(n.bits)
	}
	return float64(n.bits)
}

// Int64 returns the number as an int64, and false if no int64 is equal to the number.
func (n Number) Int64() (int64, bool) {
	bits, ok := Int64.exact(n)
	return int64(bits), ok
}

// Apart returns the distance of two integers, rounded to a float64.
func (n Number) Apart(m Number) float64 {
	if n.negative != m.negative {
		return float64(n.bits) + float64(m.bits)
	}
	return float64(max(n.bits, m.bits) - min(n.bits, m.bits))
}

// String writes an integer with all digits, and a float with as many as distinguish it from other float64s.
func (n Number) String() string {
	switch {
	case n.float:
		return strconv.FormatFloat(n.Float64(), 'g', -1, 64)
	case n.negative:
		return "-" + strconv.FormatUint(n.bits, 10)
	}
	return strconv.FormatUint(n.bits, 10)
}

// whole returns a float as an integer, and false if the float is no integer.
func (n Number) whole() (Number, bool) {
	if !n.float {
		return n, true
	}
	x := n.Float64()
	m := math.Abs(x)
	if m != math.Trunc(m) || m >= 1<<64 { // false for NaN, too
		return n, false
	}
	return Number{negative: x < 0, bits: uint64(m)}, true
}

// nearest returns the bits of the number of a type of floats that is nearest to n, ties to even.
func (d DType) nearest(n Number) uint64 {
	more := bits.Len64(n.bits) - 53
	if n.float || d == Float64 || more <= 0 {
		return d.floatWord(n.Float64())
	}
	m := n.bits >> more
	if m<<more != n.bits {
		m |= 1 // see toOdd
	}
	x := math.Ldexp(float64(m), more)
	if n.negative {
		x = -x
	}
	return d.floatWord(x)
}

// Number returns the value of an element whose bits are the lower ones of a word. A bool is 0 or 1, and 1 for every
// byte that is not 0, as in NumPy.
func (d DType) Number(word uint64) Number {
	i := &dtypes[d]
	switch {
	case i.exponent > 0:
		return Float(d.float(word))
	case i.signed:
		unused := 64 - 8*i.size
		return Int(int64(word<<unused) >> unused)
	case d == Bool:
		return Uint(min(word, 1))
	}
	return Uint(word)
}

// Read returns the value of the first element in b.
func (d DType) Read(b []byte) Number { return d.Number(d.word(b)) }

// word returns the bits of the first element.
func (d DType) word(b []byte) uint64 {
	le := binary.LittleEndian
	switch d.Size() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(le.Uint16(b))
	case 4:
		return uint64(le.Uint32(b))
	}
	return le.Uint64(b)
}

// float returns the value of a type of floats.
func (d DType) float(word uint64) float64 {
	switch d {
	case Float16:
		return float64(Half(word).Float32())
	case BFloat16:
		return float64(Brain(word).Float32())
	case Float32:
		return float64(math.Float32frombits(uint32(word)))
	}
	return math.Float64frombits(word)
}

// floatWord returns the bits of the float of a type that is nearest to x.
func (d DType) floatWord(x float64) uint64 {
	switch d {
	case Float16:
		return uint64(HalfOf(toOdd(x)))
	case BFloat16:
		return uint64(BrainOf(toOdd(x)))
	case Float32:
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(x)
}

// HoldsIndex reports whether a type has all integers from 0 to last.
func (d DType) HoldsIndex(last int) bool { return d.info().digits >= bits.Len(uint(last)) }

// Holds reports whether a type has all values of another type.
func (d DType) Holds(from DType) bool {
	to, of := &dtypes[d], &dtypes[from]
	return d == from || to.digits >= of.digits && to.exponent >= of.exponent &&
		(to.signed || !of.signed) && d != Bool && from != Invalid
}

// AppendExact appends n as an element, or returns an error if the type does not have that value.
func (d DType) AppendExact(b []byte, n Number) ([]byte, error) {
	word, ok := d.exact(n)
	if !ok {
		return b, fmt.Errorf("%v is not a number that %v holds", n, d)
	}
	return d.append(b, word), nil
}

// AppendNearest is AppendExact, but rounds to the nearest float of a type of floats, ties to even. A finite number that
// would become an infinity is an error.
func (d DType) AppendNearest(b []byte, n Number) ([]byte, error) {
	if !d.IsFloat() {
		return d.AppendExact(b, n)
	}
	word := d.nearest(n)
	if math.IsInf(d.float(word), 0) && !math.IsInf(n.Float64(), 0) {
		return b, fmt.Errorf("%v is not a number that %v holds", n, d)
	}
	return d.append(b, word), nil
}

// AppendParsed appends the number that a text says, rounded as by AppendNearest, also true or false. The text of an
// integer has digits only, and perhaps a sign.
func (d DType) AppendParsed(b []byte, text string) ([]byte, error) {
	word := text
	switch word {
	case "true", "True", "TRUE":
		word = "1"
	case "false", "False", "FALSE":
		word = "0"
	}
	size := 8 * d.Size()
	var n uint64
	var err error
	switch i := &dtypes[d]; {
	case d.IsFloat():
		var x float64
		if x, err = d.parseFloat(word); err == nil {
			if b, err = d.AppendNearest(b, Float(x)); err == nil {
				return b, nil
			}
		}
	case i.signed:
		var signed int64
		signed, err = strconv.ParseInt(word, 10, size)
		n = uint64(signed)
	default:
		n, err = strconv.ParseUint(strings.TrimPrefix(word, "+"), 10, i.digits)
	}
	if err != nil {
		return b, fmt.Errorf("%.40q is not a value of type %v", text, d)
	}
	return d.append(b, n), nil
}

// parseFloat returns a float64 that is rounded to the float of the type which is nearest to a decimal.
func (d DType) parseFloat(word string) (float64, error) {
	if strings.ContainsAny(word, notDecimal) {
		return 0, strconv.ErrSyntax
	}
	if d.Size() > 2 {
		return strconv.ParseFloat(word, 8*d.Size())
	}
	x, err := strconv.ParseFloat(word, 64)
	if math.Float64bits(x)<<24 != 0 { // more digits than half-way between two floats of 16 bits
		return x, err
	}
	below, above := math.Nextafter(x, math.Inf(-1)), math.Nextafter(x, math.Inf(1))
	if err != nil || x != x || d.Round(below) == d.Round(above) {
		return x, err
	}
	// x is half-way between two floats of 16 bits, and the decimal may not be
	exact, ok := new(big.Rat).SetString(word)
	if !ok {
		return x, nil // an infinity
	}
	switch exact.Cmp(new(big.Rat).SetFloat64(x)) {
	case -1:
		return below, nil
	case 1:
		return above, nil
	}
	return x, nil
}

// exact returns the bits of an element, and false if the type does not have the value.
func (d DType) exact(n Number) (word uint64, ok bool) {
	i := &dtypes[d]
	if d.IsFloat() {
		word = d.nearest(n)
		x := d.float(word)
		if n.float {
			is := n.Float64()
			return word, x == is || is != is
		}
		return word, bits.Len64(n.bits)-bits.TrailingZeros64(n.bits) <= i.digits && !math.IsInf(x, 0)
	}
	n, ok = n.whole()
	switch {
	case !ok || n.negative && !i.signed:
		return 0, false
	case n.negative:
		return -n.bits, n.bits <= 1<<i.digits
	}
	return n.bits, n.bits>>i.digits == 0
}

// append writes nothing beyond the element: what follows in the memory of b may be in use.
func (d DType) append(b []byte, word uint64) []byte {
	le := binary.LittleEndian
	switch d.Size() {
	case 1:
		return append(b, byte(word))
	case 2:
		return le.AppendUint16(b, uint16(word))
	case 4:
		return le.AppendUint32(b, uint32(word))
	}
	return le.AppendUint64(b, word)
}

func (d DType) put(b []byte, word uint64) {
	le := binary.LittleEndian
	switch d.Size() {
	case 1:
		b[0] = byte(word)
	case 2:
		le.PutUint16(b, uint16(word))
	case 4:
		le.PutUint32(b, uint32(word))
	default:
		le.PutUint64(b, word)
	}
}

// Text writes the first element in b with as many digits as distinguish it from the other values of its type, as NumPy
// does: 0.1 for the float16 that is nearest to it. A bool is true or false.
func (d DType) Text(b []byte) string {
	n := d.Read(b)
	switch {
	case d == Bool:
		return strconv.FormatBool(n.bits != 0)
	case d == Float32:
		return strconv.FormatFloat(n.Float64(), 'g', -1, 32)
	case d.Size() > 2 || !d.IsFloat():
		return n.String()
	}
	for digits := 1; ; digits++ { // at most 5 are needed
		text := strconv.FormatFloat(n.Float64(), 'g', digits, 64)
		if x, _ := strconv.ParseFloat(text, 64); d.Round(x) == n.Float64() || x != x {
			return Float(x).String() // 100, not 1e+02
		}
	}
}

// Floats sets dst to elements of a type in data, the first element and then every step-th: exactly, except for
// integers that a float of dst cannot hold, which are rounded to the nearest float. A bool is 0 or 1.
func Floats[T float32 | float64](dst []T, d DType, data []byte, step int) {
	if data = aligned(data, d.Size()); len(dst) == 0 {
		return
	}
	switch d {
	case Bool:
		for i := range dst {
			dst[i] = T(min(data[i*step], 1))
		}
	case Uint8:
		widen(dst, data, step)
	case Int8:
		widen(dst, Elements[int8](data), step)
	case Uint16:
		widen(dst, Elements[uint16](data), step)
	case Int16:
		widen(dst, Elements[int16](data), step)
	case Uint32:
		widen(dst, Elements[uint32](data), step)
	case Int32:
		widen(dst, Elements[int32](data), step)
	case Uint64:
		widen(dst, Elements[uint64](data), step)
	case Int64:
		widen(dst, Elements[int64](data), step)
	case Float16:
		widenSmall(dst, Elements[Half](data), step)
	case BFloat16:
		widenSmall(dst, Elements[Brain](data), step)
	case Float32:
		widen(dst, Elements[float32](data), step)
	case Float64:
		widen(dst, Elements[float64](data), step)
	default:
		panic("tensor: numbers of type " + d.String())
	}
}

// AppendFloats appends all elements of a type in data, converted as by Floats.
func AppendFloats[T float32 | float64](dst []T, d DType, data []byte) []T {
	n, all := len(dst), len(dst)+len(data)/d.Size()
	dst = slices.Grow(dst, all-n)[:all]
	Floats(dst[n:], d, data, 1)
	return dst
}

func widen[T float32 | float64, S uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](
	dst []T, src []S, step int) {
	for i := range dst {
		dst[i] = T(src[i*step])
	}
}

func widenSmall[T float32 | float64, S interface{ Float32() float32 }](dst []T, src []S, step int) {
	for i := range dst {
		dst[i] = T(src[i*step].Float32())
	}
}

// aligned returns data, or a copy that is aligned for elements of a size.
func aligned(data []byte, size int) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(max(1, size)) == 0 {
		return data
	}
	words := make([]uint64, (len(data)+7)/8)
	out := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(data))
	copy(out, data)
	return out
}

// PutFloats writes numbers as elements of a type, saturated as Saturate says.
func PutFloats[T float32 | float64](dst []byte, d DType, x []T) {
	le, size := binary.LittleEndian, d.Size()
	switch d {
	case Float16:
		for i, v := range x {
			le.PutUint16(dst[2*i:], uint16(HalfOf(toOdd(float64(v)))))
		}
	case BFloat16:
		for i, v := range x {
			le.PutUint16(dst[2*i:], uint16(BrainOf(toOdd(float64(v)))))
		}
	case Float32:
		for i, v := range x {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
		}
	case Float64:
		for i, v := range x {
			le.PutUint64(dst[8*i:], math.Float64bits(float64(v)))
		}
	default: // bool and integers
		for i, v := range x {
			d.put(dst[i*size:], d.saturatedWord(float64(v)))
		}
	}
}

// Saturate returns x as a value of a type: integers lose the fraction and stop at their limits, where NaN becomes 0. Of
// 64 bits the upper limit is returned as the power of 2 above it. A bool is 0 or 1. A float is the nearest one, ties to
// even, and too large becomes an infinity.
func (d DType) Saturate(x float64) float64 {
	switch {
	case d.IsFloat():
		return d.Round(x)
	case d == Bool:
		if x != 0 {
			return 1
		}
		return 0
	case x != x:
		return 0
	}
	i := &dtypes[d]
	low, high := 0.0, math.Float64frombits(uint64(1023+i.digits)<<52) // 2^digits
	if i.signed {
		low = -high
	}
	return min(max(math.Trunc(x), low), high-1)
}

// saturatedWord returns the bits of Saturate for a type that is not of floats.
func (d DType) saturatedWord(x float64) uint64 {
	switch x = d.Saturate(x); {
	case x >= 1<<63 && d == Int64:
		return math.MaxInt64
	case x >= 1<<64:
		return math.MaxUint64
	case x < 0:
		return uint64(int64(x))
	}
	return uint64(x)
}
