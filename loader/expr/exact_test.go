package expr_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// TestComparesExactly compares numbers of every type with constants, as the rational numbers that they are.
func TestComparesExactly(t *testing.T) {
	ops := []string{"==", "!=", "<", "<=", ">", ">=", "in", "not in"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for d := tensor.Bool; d <= tensor.Float64; d++ {
		t.Run(d.String(), func(t *testing.T) {
			for range 1000 {
				data, numbers := randomNumbers(rnd, d, 12)
				op := ops[rnd.IntN(len(ops))]
				n := 1
				if strings.HasSuffix(op, "in") {
					n = rnd.IntN(4)
				}
				texts, values := []string{}, []float64OrInt{}
				for range n {
					text, v := randomValue(rnd, numbers)
					texts, values = append(texts, text), append(values, v)
				}
				text := fmt.Sprintf("x %s %s", op, strings.Join(texts, ", "))
				if strings.HasSuffix(op, "in") {
					text = fmt.Sprintf("x %s (%s)", op, strings.Join(texts, ", "))
				}
				view := tensor.Of(tensor.Spec{Name: "x", DType: d}, len(numbers), data)
				src, err := combine.NewArrays(combine.Array{Name: "x", Values: view})
				require.NoError(t, err)
				want := []int{}
				for i, x := range numbers {
					if wantKept(x, d, op, values) {
						want = append(want, i)
					}
				}
				if got, err := found(t.Context(), src, text); err != nil || got != fmt.Sprint(want) {
					t.Fatalf("%s of %v is %v, %v, want %v", text, numbers, got, err, want)
				}
			}
		})
	}
}

// float64OrInt is a number as Python has it.
type float64OrInt struct {
	n *big.Int // nil for a float
	f float64
}

func (v float64OrInt) nan() bool { return v.n == nil && math.IsNaN(v.f) }

// cmp compares numbers that are not NaN.
func (v float64OrInt) cmp(w float64OrInt) int {
	infinite := func(v float64OrInt) int {
		switch {
		case v.n == nil && math.IsInf(v.f, 1):
			return 1
		case v.n == nil && math.IsInf(v.f, -1):
			return -1
		}
		return 0
	}
	if a, b := infinite(v), infinite(w); a != 0 || b != 0 {
		return a - b
	}
	return v.rat().Cmp(w.rat())
}

func (v float64OrInt) rat() *big.Rat {
	if v.n != nil {
		return new(big.Rat).SetInt(v.n)
	}
	return new(big.Rat).SetFloat64(v.f)
}

// wantKept is the oracle.
func wantKept(x float64OrInt, d tensor.DType, op string, values []float64OrInt) bool {
	if op == "in" || op == "not in" {
		found := slices.ContainsFunc(values, func(v float64OrInt) bool {
			return x.nan() && v.nan() || wantKept(x, d, "==", []float64OrInt{v})
		})
		return found == (op == "in")
	}
	v := values[0]
	if x.nan() || v.nan() {
		return op == "!="
	}
	if d.IsFloat() && v.n == nil {
		v = nearest(v, d)
	}
	c := x.cmp(v)
	return map[string]bool{"==": c == 0, "!=": c != 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op]
}

// nearest rounds a value to the numbers of a type of floats, ties to even; beyond them it stays as it is.
func nearest(v float64OrInt, d tensor.DType) float64OrInt {
	if d == tensor.Float64 || math.IsInf(v.f, 0) {
		return v
	}
	if d == tensor.Float32 {
		if f := float64(float32(v.f)); !math.IsInf(f, 0) {
			return float64OrInt{f: f}
		}
		return v
	}
	number := func(bits int) float64 { // of positive bits, which are in order
		if d == tensor.Float16 {
			return float64(tensor.Half(bits).Float32())
		}
		return float64(tensor.Brain(bits).Float32())
	}
	last := map[tensor.DType]int{tensor.Float16: 0x7bff, tensor.BFloat16: 0x7f7f}[d]
	a := math.Abs(v.f)
	at := sort.Search(last, func(i int) bool { return number(i+1) > a })
	down := new(big.Rat).Sub(new(big.Rat).SetFloat64(a), new(big.Rat).SetFloat64(number(at)))
	step := number(last) - number(last-1)
	if at < last {
		step = number(at+1) - number(at)
	}
	half := new(big.Rat).SetFloat64(step / 2)
	up := down.Cmp(half) > 0 || down.Cmp(half) == 0 && at%2 == 1
	switch {
	case up && at == last:
		return v
	case up:
		at++
	}
	return float64OrInt{f: math.Copysign(number(at), v.f)}
}

// randomNumbers returns records of a type, many of them at the ends of its range.
func randomNumbers(rnd *rand.Rand, d tensor.DType, n int) (data []byte, numbers []float64OrInt) {
	for range n {
		bits := rnd.Uint64()
		if rnd.IntN(3) > 0 {
			bits = []uint64{0, 1, 2, 1 << 63, 1<<63 - 1, 1<<63 + 1, math.MaxUint64, math.MaxUint64 - 1, 1 << 53, 1<<53 + 1, 1 << 31, 1<<31 - 1, 1 << 15, 1<<15 - 1, 1 << 7, 127, 1 << 24, 1<<24 + 1,
				0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7f800000, 0x7fc00000, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x7f80, 0x7f7f, 0x7f7fffff, 0x7fefffffffffffff, 0x3ff0000000000000, 0x3f800000, 0x3c00}[rnd.IntN(34)]
		}
		if d == tensor.Bool {
			bits %= 2
		}
		record := binary.LittleEndian.AppendUint64(nil, bits)[:d.Size()]
		data = append(data, record...)
		var x float64OrInt
		switch d {
		case tensor.Bool, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
			x.n = new(big.Int).SetUint64(bits << (64 - 8*d.Size()) >> (64 - 8*d.Size()))
		case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
			x.n = big.NewInt(int64(bits) << (64 - 8*d.Size()) >> (64 - 8*d.Size()))
		case tensor.Float16:
			x.f = float64(tensor.Half(bits).Float32())
		case tensor.BFloat16:
			x.f = float64(tensor.Brain(bits).Float32())
		case tensor.Float32:
			x.f = float64(math.Float32frombits(uint32(bits)))
		case tensor.Float64:
			x.f = math.Float64frombits(bits)
		}
		numbers = append(numbers, x)
	}
	return data, numbers
}

// randomValue returns a value of a filter, often one of the records or next to it.
func randomValue(rnd *rand.Rand, numbers []float64OrInt) (text string, v float64OrInt) {
	x := numbers[rnd.IntN(len(numbers))]
	switch rnd.IntN(6) {
	case 0:
		v.f = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0.1, 0.5, -0.5, 65519.99, 65520, 1e300, math.Copysign(0, -1), 16777217, 1 << 63, 1 << 64, -1 << 63}[rnd.IntN(14)]
	case 1:
		v.n = new(big.Int).Lsh(big.NewInt(int64(rnd.IntN(5)-2)), uint(rnd.IntN(80)))
	default:
		if v = x; v.n != nil && rnd.IntN(2) == 0 {
			f, _ := new(big.Rat).SetInt(v.n).Float64()
			v = float64OrInt{f: f + []float64{0, 0.5, -0.5}[rnd.IntN(3)]}
		} else if v.n != nil {
			v.n = new(big.Int).Add(v.n, big.NewInt(int64(rnd.IntN(3)-1)))
		} else if !v.nan() && !math.IsInf(v.f, 0) {
			v.f = []float64{v.f, math.Nextafter(v.f, math.Inf(1)), v.f * (1 + 1e-4), math.Nextafter(v.f, math.Inf(-1))}[rnd.IntN(4)]
		}
	}
	switch {
	case v.n != nil:
		return v.n.String(), v
	case math.IsNaN(v.f):
		return "nan", v
	case math.IsInf(v.f, 0):
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(v.f), "+")), v
	}
	if math.Abs(v.f) < 1e300 && rnd.IntN(2) == 0 {
		text = fmt.Sprintf("%.17e", v.f)
	} else {
		text = fmt.Sprintf("%.17g", v.f)
	}
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text, v
}
