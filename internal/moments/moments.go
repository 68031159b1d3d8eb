// Package moments accumulates least, greatest, mean and deviation of numbers.
//
// [Of] returns the [Moments] of a list, Merge joins the moments of two lists, and a [Meter] measures the channels of
// records of any dtype with buffers that it keeps. NaNs and infinities are counted and left out. Results are part of
// manifests and recipes, so their last bits matter: the order in which numbers are added is fixed, and equal on all
// processors.
package moments

import "math"

// Moments are the moments of some numbers; the zero value is of none. Bytes add up as integers, which no order can
// change; other numbers by the pairwise update of Chan, Golub, LeVeque (1979), whose result depends on the order of the
// parts and not on which goroutine computed them.
type Moments struct {
	N, NonFinite    int64 // finite numbers, which all other fields describe, and NaNs and infinities
	Min, Max        float64
	Sum, SumSquares int64   // of bytes; 0 for other numbers
	Mean, M2        float64 // and the sum of squares around it; 0 for bytes
}

// One returns the moments of one finite number.
func One(x float64) Moments { return Moments{N: 1, Min: x, Max: x, Mean: x} }

// Of returns the moments of x, in two passes: the mean, then the squares around it. It may change x.
func Of(x []float64) Moments {
	sum := sumOf(x)
	bad := 0
	if notFinite(sum) { // because of one of them, or of their size
		bad = len(x)
		x = finite(x)
		bad -= len(x)
		sum = sumOf(x)
	}
	return of(x, bad, sum, squaresAround)
}

// InOrder is Of with numbers added one by one, and not four at a time: recipes of existing datasets have statistics
// that were added up in this way, and a different last bit would be a different recipe. It may change x.
func InOrder(x []float64) Moments {
	bad := len(x)
	x = finite(x)
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return of(x, bad-len(x), sum, func(mean float64, x []float64) (m2 float64) {
		for _, v := range x {
			d := v - mean
			m2 += float64(d * d)
		}
		return m2
	})
}

func of(x []float64, bad int, sum float64, squares func(mean float64, x []float64) float64) Moments {
	m := Moments{NonFinite: int64(bad), N: int64(len(x))}
	if m.N == 0 {
		return m
	}
	m.Min, m.Max = limits(x)
	m.Mean = sum / float64(m.N)
	if math.IsInf(sum, 0) {
		m.Mean = 0
		for _, v := range x {
			m.Mean += v / float64(m.N)
		}
	}
	m.M2 = squares(m.Mean, x)
	return m
}

// Merge adds the numbers of b after the numbers of a.
func (a *Moments) Merge(b Moments) {
	a.NonFinite += b.NonFinite
	if b.N == 0 {
		return
	}
	if a.N == 0 {
		b.NonFinite = a.NonFinite
		*a = b
		return
	}
	n := float64(a.N + b.N)
	d := b.Mean - a.Mean
	a.M2 += b.M2 + float64(d*d*(float64(a.N)*float64(b.N)/n))
	if math.IsInf(d, 0) {
		a.Mean = float64(a.Mean*(float64(a.N)/n)) + float64(b.Mean*(float64(b.N)/n))
	} else {
		a.Mean += float64(d * (float64(b.N) / n))
	}
	a.Sum += b.Sum
	a.SumSquares += b.SumSquares
	a.Min, a.Max = math.Min(a.Min, b.Min), math.Max(a.Max, b.Max)
	a.N += b.N
}

// mergeEach merges the moments of each number of x separately.
func (a *Moments) mergeEach(x []float64) {
	for i := 0; i < len(x); i++ {
		if i += a.mergeFinite(x[i:]); i < len(x) {
			a.Merge(Of(x[i : i+1 : i+1]))
		}
	}
}

// mergeFinite is mergeEach up to the first number that is not plain: it returns how many it has merged.
func (a *Moments) mergeFinite(x []float64) int {
	if a.N == 0 {
		return 0
	}
	n, mean, m2, low, high := float64(a.N), a.Mean, a.M2, a.Min, a.Max
	done := len(x)
	for i, v := range x {
		d, after := v-mean, n+1
		if notFinite(d) { // or both are very large
			done = i
			break
		}
		m2 += float64(d * d * (n / after))
		mean += float64(d * (1 / after))
		if v <= low {
			low = math.Min(low, v)
		}
		if v >= high {
			high = math.Max(high, v)
		}
		n = after
	}
	a.N, a.Mean, a.M2, a.Min, a.Max = a.N+int64(done), mean, m2, low, high
	return done
}

// Std returns the deviation of numbers that are no bytes: of the population, at most the largest
// float64; 0 of no numbers.
func (a Moments) Std() float64 {
	if a.N == 0 {
		return 0
	}
	return min(math.Sqrt(a.M2/float64(a.N)), math.MaxFloat64)
}

// OfBytes returns mean and deviation of bytes; 0 if there are no bytes.
func (a Moments) OfBytes() (mean, std float64) {
	if a.N == 0 {
		return 0, 0
	}
	n := float64(a.N)
	mean = float64(a.Sum) / n
	return mean, math.Sqrt(math.Max(0, float64(a.SumSquares)/n-float64(mean*mean)))
}

func notFinite(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) }

// sumOf adds in four lanes, as the CPU runs independent additions in parallel.
func sumOf(x []float64) float64 {
	var lanes [4]float64
	for ; len(x) >= 4; x = x[4:] {
		lanes[0] += x[0]
		lanes[1] += x[1]
		lanes[2] += x[2]
		lanes[3] += x[3]
	}
	for i, v := range x {
		lanes[i] += v
	}
	return lanes[0] + lanes[1] + (lanes[2] + lanes[3])
}

// squaresAround sums (v-mean)^2, in lanes.
func squaresAround(mean float64, x []float64) float64 {
	var lanes [4]float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := x[0]-mean, x[1]-mean, x[2]-mean, x[3]-mean
		lanes[0] += float64(a * a)
		lanes[1] += float64(b * b)
		lanes[2] += float64(c * c)
		lanes[3] += float64(d * d)
	}
	for i, v := range x {
		d := v - mean
		lanes[i] += float64(d * d)
	}
	return lanes[0] + lanes[1] + (lanes[2] + lanes[3])
}

// limits returns the least and the greatest.
func limits(x []float64) (low, high float64) {
	low, high = x[0], x[0]
	for _, v := range x {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high
}

// finite moves the finite numbers of x to its front.
func finite(x []float64) []float64 {
	n := 0
	for _, v := range x {
		if v*0 == 0 {
			x[n] = v
			n++
		}
	}
	return x[:n]
}
