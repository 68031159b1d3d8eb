package tensor

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// oracle is the value of an element, computed from its bits without the codec: exact, or NaN or an infinity.
type oracle struct {
	exact   *big.Rat
	special float64 // where exact is nil
	minus   bool    // -0, or a negative number
}

func oracleOf(d DType, b []byte) oracle {
	b = slices.Clone(b)
	slices.Reverse(b)
	n := new(big.Int).SetBytes(b)
	fraction, exponent := map[DType]uint{Float16: 10, BFloat16: 7, Float32: 23, Float64: 52}[d],
		map[DType]uint{Float16: 5, BFloat16: 8, Float32: 8, Float64: 11}[d]
	size := uint(8 * len(b))
	switch d {
	case Bool:
		return oracle{exact: new(big.Rat).SetInt64(int64(min(n.Uint64(), 1)))}
	case Int8, Int16, Int32, Int64:
		if n.Bit(int(size)-1) == 1 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), size))
		}
		return oracle{exact: new(big.Rat).SetInt(n), minus: n.Sign() < 0}
	case Uint8, Uint16, Uint32, Uint64:
		return oracle{exact: new(big.Rat).SetInt(n)}
	}
	bits := n.Uint64()
	minus := bits>>(size-1) == 1
	e := int(bits >> fraction & (1<<exponent - 1))
	m := bits & (1<<fraction - 1)
	sign := 1
	if minus {
		sign = -1
	}
	if e == 1<<exponent-1 {
		if m != 0 {
			return oracle{special: math.NaN()}
		}
		return oracle{special: math.Inf(sign), minus: minus}
	}
	if e == 0 {
		e = 1
	} else {
		m |= 1 << fraction
	}
	shift := e - (1<<(exponent-1) - 1) - int(fraction)
	x := new(big.Rat).SetInt(new(big.Int).Lsh(new(big.Int).SetUint64(m), uint(max(shift, 0))))
	x.Quo(x, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(-shift, 0)))))
	return oracle{exact: x.Mul(x, big.NewRat(int64(sign), 1)), minus: minus}
}

// same reports whether the element is the value: -0 is 0 for integers only.
func (o oracle) same(d DType, b []byte) bool {
	is := oracleOf(d, b)
	if o.exact == nil || is.exact == nil {
		return o.exact == nil && is.exact == nil && (o.special == is.special || o.special != o.special && is.special != is.special)
	}
	return o.exact.Cmp(is.exact) == 0 && (o.minus == is.minus || !d.IsFloat())
}

// small are the finite numbers of a type of 16 bits, in order.
var small = func() map[DType][]oracle {
	m := make(map[DType][]oracle)
	for _, d := range []DType{Float16, BFloat16} {
		for i := range 1 << 15 {
			if o := oracleOf(d, binary.LittleEndian.AppendUint16(nil, uint16(i))); o.exact != nil {
				m[d] = append(m[d], o)
			}
		}
	}
	return m
}()

// nearest returns the nearest float of a type, ties to even; ok is false if that is an infinity.
func nearest(d DType, x *big.Rat) (r *big.Rat, ok bool) {
	switch d {
	case Float64:
		f, _ := x.Float64()
		return new(big.Rat).SetFloat64(f), !math.IsInf(f, 0)
	case Float32:
		f, _ := x.Float32()
		return new(big.Rat).SetFloat64(float64(f)), !math.IsInf(float64(f), 0)
	}
	abs, list := new(big.Rat).Abs(x), small[d]
	at, _ := slices.BinarySearchFunc(list, abs, func(o oracle, x *big.Rat) int { return o.exact.Cmp(x) })
	low := max(0, at-1)
	if at < len(list) && list[at].exact.Cmp(abs) == 0 {
		low = at
	}
	above := new(big.Rat).Set(list[low].exact)
	if low+1 < len(list) {
		above.Set(list[low+1].exact)
	} else { // where the next number would be
		above.Add(above, new(big.Rat).Sub(above, list[low-1].exact))
	}
	switch twice := new(big.Rat).Mul(abs, big.NewRat(2, 1)); twice.Cmp(new(big.Rat).Add(list[low].exact, above)) {
	case 1:
		low++
	case 0:
		low += low & 1 // numbers are in the order of their bits
	}
	if low == len(list) {
		return nil, false
	}
	r = new(big.Rat).Set(list[low].exact)
	if x.Sign() < 0 {
		r.Neg(r)
	}
	return r, true
}

func all() (list []DType) {
	for d := Bool; int(d) < len(dtypes); d++ {
		list = append(list, d)
	}
	return list
}

// samples are elements of a type: those near limits, near powers of two, and random ones.
func samples(d DType) (list [][]byte) {
	rnd := rand.New(rand.NewPCG(uint64(d), 1))
	add := func(bits uint64) {
		list = append(list, binary.LittleEndian.AppendUint64(nil, bits)[:d.Size()])
	}
	for k := range 8 * d.Size() {
		for near := range uint64(5) {
			add(1<<k + near - 2)
			add(-(1 << k) + near - 2)
		}
		add(1<<k | 1<<(k/2))
		add(rnd.Uint64())
		add(rnd.Uint64() >> rnd.IntN(64))
	}
	if d.IsFloat() {
		for k := range 140 { // half-way between floats of fewer digits
			x := math.Ldexp(float64(1<<24|rnd.Uint64N(1<<12)<<12|1<<rnd.IntN(12)), k-90)
			add(d.floatWord(d.Round(x)))
			add(d.floatWord(d.Round(math.Nextafter(x, 0))))
			add(d.floatWord(d.Round(-x)))
			add(d.floatWord(d.Round(math.Trunc(x))))
		}
	}
	return list
}

// Every value goes through every door as math/big has it: to a number, to an element of each type, exact, nearest and
// saturating, in blocks, and through a text.
func TestCodec(t *testing.T) {
	for _, from := range all() {
		for _, b := range samples(from) {
			o, n := oracleOf(from, b), from.Read(b)
			if x := n.Float64(); o.exact != nil {
				want, _ := o.exact.Float64()
				if x != want || math.Signbit(x) != o.minus {
					t.Fatalf("%v %x: is %v, want %v", from, b, x, want)
				}
			} else if x != o.special && x == x {
				t.Fatalf("%v %x: is %v, want %v", from, b, x, o.special)
			}
			if i, ok := n.Int64(); ok != (o.exact != nil && o.exact.IsInt() && o.exact.Num().IsInt64()) || ok && i != o.exact.Num().Int64() {
				t.Fatalf("%v %x: int64 %v %v", from, b, i, ok)
			}
			text := from.Text(b)
			back, err := from.AppendParsed(nil, text)
			if err != nil || !o.same(from, back) {
				t.Fatalf("%v %x: text %s, which is read as %x, %v", from, b, text, back, err)
			}
			for _, to := range all() {
				checkPut(t, from, to, b, o, n)
			}
			for step := 1; step < 3; step++ {
				checkBlock[float32](t, from, b, o, step)
				checkBlock[float64](t, from, b, o, step)
			}
		}
	}
}

func checkPut(t *testing.T, from, to DType, b []byte, o oracle, n Number) {
	t.Helper()
	held := o.exact == nil && to.IsFloat()
	var rounded *big.Rat
	near := held
	switch {
	case o.exact == nil:
	case to.IsFloat():
		rounded, near = nearest(to, o.exact)
		held = near && rounded.Cmp(o.exact) == 0
	case o.exact.IsInt():
		low, high := limits(to)
		held = o.exact.Num().Cmp(low) >= 0 && o.exact.Num().Cmp(high) < 0
		near = held
	}
	memory := []byte{7, 9: 7} // others use what is after the element
	exact, err := to.AppendExact(memory[:1], n)
	if (err == nil) != held || held && !o.same(to, exact[1:]) || memory[0] != 7 || memory[9] != 7 ||
		slices.ContainsFunc(memory[1+to.Size():9], func(b byte) bool { return b != 0 }) {
		t.Fatalf("%v %x (%v) as %v: %x, %v; exact there: %v", from, b, n, to, exact, err, held)
	}
	if !held && to.Holds(from) {
		t.Fatalf("%v holds %v, but not %v", to, from, n)
	}
	got, err := to.AppendNearest(nil, n)
	if (err == nil) != near {
		t.Fatalf("%v %x (%v) nearest as %v: %x, %v", from, b, n, to, got, err)
	}
	if rounded != nil && near && oracleOf(to, got).exact.Cmp(rounded) != 0 {
		t.Fatalf("%v %x (%v) nearest as %v: %v, want %v", from, b, n, to, oracleOf(to, got).exact.FloatString(30), rounded.FloatString(30))
	}
	if x := n.Float64(); Float(x) == n || x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		checkSaturated(t, to, x)
	}
}

// limits returns the smallest integer of a type, and the one after the largest.
func limits(d DType) (low, high *big.Int) {
	low, high = new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(8*d.Size()))
	switch d {
	case Bool:
		high.SetInt64(2)
	case Int8, Int16, Int32, Int64:
		high.Rsh(high, 1)
		low.Neg(high)
	}
	return low, high
}

// checkSaturated compares with the limits of the type.
func checkSaturated(t *testing.T, to DType, x float64) {
	t.Helper()
	want := Float(math.Trunc(x))
	switch {
	case to == Bool:
		want = Uint(0)
		if x != 0 {
			want = Uint(1)
		}
	case to.IsFloat():
		want = Float(to.Round(x))
	case x != x:
		want = Uint(0)
	}
	got := make([]byte, to.Size())
	PutFloats(got, to, []float64{x})
	exact, err := to.AppendExact(nil, want)
	if err != nil { // beyond a limit
		limit, high := limits(to)
		if x > 0 {
			limit.Sub(high, big.NewInt(1))
		}
		if !limit.IsInt64() {
			exact, err = to.AppendExact(nil, Uint(limit.Uint64()))
		} else {
			exact, err = to.AppendExact(nil, Int(limit.Int64()))
		}
	}
	if err != nil || !slices.Equal(exact, got) && x == x {
		t.Fatalf("%v saturated as %v: %x, want %x, %v", x, to, got, exact, err)
	}
}

func checkBlock[T float32 | float64](t *testing.T, d DType, b []byte, o oracle, step int) {
	t.Helper()
	var block []byte
	for range 2*step + 1 {
		block = append(block, b...)
	}
	for unaligned := range 2 {
		data := make([]byte, len(block)+8)[unaligned:]
		copy(data, block)
		out := make([]T, 2)
		Floats(out, d, data[:len(block)], step)
		for _, x := range out {
			want := T(o.special)
			if o.exact != nil {
				if f32, is := any(&want).(*float32); is {
					*f32, _ = o.exact.Float32()
				} else {
					f, _ := o.exact.Float64()
					want = T(f)
				}
			}
			if x != want && (x == x || want == want) || math.Signbit(float64(x)) != o.minus && x == x {
				t.Fatalf("%v %x in a block: %v, want %v", d, b, x, want)
			}
		}
	}
}

// Texts of numbers are rounded once, also to 16 bits, and what a type does not hold is refused.
func TestParsed(t *testing.T) {
	words := []string{"0", "+7", "255", "256", "-128", "-129", "65535", "9007199254740993", "18446744073709551615",
		"18446744073709551616", "-9223372036854775808", "-9223372036854775809", "0.1", "1e-45", "1e-46", "65519.999", "65520", "1e39",
		"1.00048828125", "1.000488281250000000000001", "1.000488281249999999999999", "-1.00390625000000000000001"}
	for _, word := range words {
		x, _ := new(big.Rat).SetString(word)
		for _, d := range all() {
			b, err := d.AppendParsed(nil, word)
			_, whole := new(big.Int).SetString(word, 10)
			var want *big.Rat
			ok := whole
			if d.IsFloat() {
				want, ok = nearest(d, x)
			} else if whole {
				low, high := limits(d)
				want, ok = x, x.Num().Cmp(low) >= 0 && x.Num().Cmp(high) < 0
			}
			if (err == nil) != ok || ok && oracleOf(d, b).exact.Cmp(want) != 0 {
				t.Errorf("%s as %v: %x, %v", word, d, b, err)
			}
		}
	}
	for _, word := range []string{"", " 1", "1_0", "0x10", "1.5.2", "one", "--1", "+-1", "1/2"} {
		for _, d := range all() {
			if b, err := d.AppendParsed(nil, word); err == nil {
				t.Errorf("%q as %v: %x", word, d, b)
			}
		}
	}
}

// The texts are those of NumPy for float16, and of ml_dtypes for bfloat16.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		d    DType
		x    float64
		want string
	}{
		{Float16, 0.1, "0.1"}, {Float16, 65504, "65500"}, {Float16, 1.0 / 3, "0.3333"}, {Float16, 100, "100"},
		{Float16, 5.9604645e-08, "6e-08"}, {BFloat16, 0.1, "0.1"}, {BFloat16, 3.140625, "3.14"}, {BFloat16, math.Inf(-1), "-Inf"},
		{Float32, 0.1, "0.1"}, {Float64, 0.1, "0.1"}, {Bool, 1, "true"}, {Int64, -1, "-1"}, {Float16, math.NaN(), "NaN"},
	} {
		b := make([]byte, c.d.Size())
		PutFloats(b, c.d, []float64{c.x})
		if got := c.d.Text(b); got != c.want {
			t.Errorf("%v of %v: %s, want %s", c.x, c.d, got, c.want)
		}
	}
	if got := Uint64.Text(binary.LittleEndian.AppendUint64(nil, math.MaxUint64)); got != strconv.FormatUint(math.MaxUint64, 10) {
		t.Error(got)
	}
}
