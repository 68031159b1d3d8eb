package column

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestParseFloat compares with strconv, bit by bit: odd words, decimals of every length, and neighbors of the
// values half-way between two float32, where rounding twice would be wrong.
func TestParseFloat(t *testing.T) {
	words := strings.Fields("0 -0 +0 . -. + - 1. .5 -.5 +.5 1..2 1.2.3 1e5 1E-3 inf -Inf NaN --1 +-1 12a " +
		"340282350000000 0.00000000000001 999999999999999 9999999999999999 16777217 16777217.0 16777219 0.12345678: 0.1234:678 0.1234?6789 0.12345678/ 0.1 0.3 123456789012345")
	words = append(words, "", " 1", "1 ")
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		digits := strconv.FormatUint(r.Uint64N(uint64(math.Pow10(1+r.IntN(17)))), 10)
		at := r.IntN(len(digits) + 1)
		words = append(words, digits[:at]+"."+digits[at:], "-0."+digits)
		long := strconv.FormatUint(1e18+r.Uint64N(1e19-1e18), 10)[:16+r.IntN(4)]
		at = r.IntN(len(long) + 1)
		words = append(words, long[:at]+"."+long[at:], "-0."+long, "0.0"+long, strconv.FormatFloat(r.Float64(), 'g', -1, 64))
		tie := 1<<53 + 2*r.Uint64N(1<<52) + 1 // half-way between two float64, at their own step
		words = append(words, fmt.Sprint(tie, ".0"), fmt.Sprint(tie, ".001"), fmt.Sprint(tie-1, ".999"))
		middle := float64(1<<24+2*r.Uint64N(1<<23)+1) / (1 << 25) // half-way between two float32 of [0.5, 1)
		words = append(words, strconv.FormatFloat(middle, 'f', 15, 64), strconv.FormatFloat(middle, 'f', -1, 64))
		exact := strconv.FormatFloat(middle, 'f', 25, 64)[:2+17]
		for _, last := range []string{"0", "1", "9"} { // next to it, by steps smaller than those of float64
			words = append(words, exact[:18]+last, exact+last)
		}
	}
	for _, w := range words {
		for _, bits := range []int{32, 64} {
			got, err := parseFloat(w, bits)
			want, wantErr := strconv.ParseFloat(w, bits)
			if math.Float64bits(got) != math.Float64bits(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%q in %d bits: got %v, %v, want %v, %v", w, bits, got, err, want, wantErr)
			}
		}
	}
	for _, w := range []string{"0x1p3", "0X1P3", "1_000", "1_0.5", "0x_1p-2"} {
		if x, err := parseFloat(w, 64); err == nil {
			t.Errorf("%q is %v", w, x)
		}
	}
}

func BenchmarkParseFloat(b *testing.B) {
	for name, parse := range map[string]func(string, int) (float64, error){"here": parseFloat, "strconv": strconv.ParseFloat} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := parse("-0.30471709", 32); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
