package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// exact returns mean and sum of squares around it, by exact arithmetic.
func exact(x []float64) (mean, m2 float64) {
	sum, n := new(big.Rat), big.NewRat(int64(len(x)), 1)
	for _, v := range x {
		sum.Add(sum, new(big.Rat).SetFloat64(v))
	}
	sum.Quo(sum, n)
	squares := new(big.Rat)
	for _, v := range x {
		d := new(big.Rat).Sub(new(big.Rat).SetFloat64(v), sum)
		squares.Add(squares, d.Mul(d, d))
	}
	mean, _ = sum.Float64()
	m2, _ = squares.Float64()
	return mean, m2
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) }

// Of, InOrder and Merge of parts of any length give the moments of the definition.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 70; n++ {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()*3 + 100
		}
		mean, m2 := exact(x)
		var parts Moments
		for rest := slices.Clone(x); len(rest) > 0; {
			k := 1 + rng.IntN(len(rest))
			parts.Merge(Of(rest[:k]))
			rest = rest[k:]
		}
		for name, got := range map[string]Moments{"Of": Of(slices.Clone(x)), "InOrder": InOrder(slices.Clone(x)), "Merge": parts} {
			want := Moments{N: int64(n), Min: slices.Min(x), Max: slices.Max(x), Mean: got.Mean, M2: got.M2}
			if got != want || !near(got.Mean, mean) || !near(got.M2, m2) {
				t.Errorf("%s of %d numbers: %+v, want mean %v and squares %v", name, n, got, mean, m2)
			}
		}
	}
}

func TestNonFinite(t *testing.T) {
	x := []float64{math.NaN(), 1, math.Inf(1), 3, math.Inf(-1)}
	want := Moments{N: 2, NonFinite: 3, Min: 1, Max: 3, Mean: 2, M2: 2}
	for name, of := range map[string]func([]float64) Moments{"Of": Of, "InOrder": InOrder} {
		if got := of(slices.Clone(x)); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if got := of([]float64{math.NaN()}); got != (Moments{NonFinite: 1}) {
			t.Errorf("%s of a NaN: %+v", name, got)
		}
		huge := of([]float64{math.MaxFloat64, math.MaxFloat64})
		if huge.Mean != math.MaxFloat64 || huge.Std() != 0 {
			t.Errorf("%s of numbers whose sum is infinite: %+v", name, huge)
		}
	}
	m := Of([]float64{-math.MaxFloat64})
	m.Merge(One(math.MaxFloat64))
	if m.Mean != 0 || m.Std() != math.MaxFloat64 {
		t.Errorf("of numbers whose distance is infinite: %+v, deviation %v", m, m.Std())
	}
}

func TestBytes(t *testing.T) {
	m := Moments{N: 2, Min: 1, Max: 2, Sum: 3, SumSquares: 5}
	m.Merge(Moments{N: 1, Min: 6, Max: 6, Sum: 6, SumSquares: 36})
	mean, std := m.OfBytes()
	if mean != 3 || !near(std, math.Sqrt(41.0/3-9)) || m.Min != 1 || m.Max != 6 {
		t.Errorf("%+v: mean %v, deviation %v", m, mean, std)
	}
}
