package sampler_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/penstock/penstock/loader/sampler"
)

func permutation(n int, seed uint64, epoch int) []int {
	p := make([]int, n)
	sampler.Shuffle{}.Epoch(n, seed, epoch).Fill(0, p)
	return p
}

func TestShuffleIsAPermutation(t *testing.T) {
	sizes := []int{1, 2, 3, 4, 5, 17, 255, 256, 4095, 4096, 4097, 4098, 4160, 4224, 4225, 4226, 65535, 65536, 65537, 99991, 1 << 20}
	for _, n := range sizes {
		for seed := range uint64(3) {
			seen := make([]bool, n)
			for pos, r := range permutation(n, seed, 1) {
				if r < 0 || r >= n || seen[r] {
					t.Fatalf("n %d, seed %d: position %d: record %d is out of range or comes twice", n, seed, pos, r)
				}
				seen[r] = true
			}
		}
	}
}

func TestShuffleIsTheSameInPieces(t *testing.T) {
	for _, n := range []int{10, 5000} {
		want := permutation(n, 3, 4)
		seq := sampler.Shuffle{}.Epoch(n, 3, 4)
		for pos := n; pos > 0; {
			k := min(7, pos)
			pos -= k
			got := make([]int, k)
			seq.Fill(pos, got)
			if !slices.Equal(got, want[pos:pos+k]) {
				t.Fatalf("n %d: position %d: %v, not %v", n, pos, got, want[pos:pos+k])
			}
		}
	}
}

func TestShuffleNeverChanges(t *testing.T) {
	for _, c := range []struct {
		n     int
		seed  uint64
		epoch int
		want  []int
	}{
		{10, 0, 0, []int{8, 2, 0, 6, 1}},
		{10, 42, 1, []int{7, 3, 6, 8, 1}},
		{100_000, 42, 0, []int{2337, 89417, 39277, 9355, 76613}},
		{1 << 40, 42, 1, []int{763909454639, 183898117350, 187242689887, 746452252825, 541699680307}},
		{math.MaxInt, math.MaxUint64, -1, []int{1260977630632553408, 5717199517624373559, 4614571450123725250, 380417558163237617, 2810145712255229563}},
	} {
		got := make([]int, 5)
		sampler.Shuffle{}.Epoch(c.n, c.seed, c.epoch).Fill(3, got)
		if !slices.Equal(got, c.want) {
			t.Errorf("{%d, %d, %d, %#v},", c.n, c.seed, c.epoch, got)
		}
	}
}

// checkUniform fails the test if counts could hardly come from equal probabilities: if
// chi-square is more than six standard deviations from its mean, which a fair shuffle does
// once in more than a million tests. The seeds are fixed, so that the outcome is as well.
func checkUniform(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	chi2 := 0.0
	for _, c := range counts {
		chi2 += (float64(c) - want) * (float64(c) - want) / want
	}
	df := float64(len(counts) - 1)
	if z := (chi2 - df) / math.Sqrt(2*df); z > 6 || z < -6 {
		t.Errorf("%s: chi-square %.0f for %.0f degrees of freedom (%.1f sigma)", what, chi2, df, z)
	}
}

// pair numbers the ordered pairs of different records below n.
func pair(a, b, n int) int {
	if b > a {
		b--
	}
	return a*(n-1) + b
}

func TestEveryPermutationOfFiveIsAsLikely(t *testing.T) {
	index := map[string]int{}
	counts := make([]int, 120)
	for epoch := range 60_000 {
		key := fmt.Sprint(permutation(5, 1, epoch))
		if _, ok := index[key]; !ok {
			index[key] = len(index)
		}
		counts[index[key]]++
	}
	if len(index) != 120 {
		t.Errorf("%d of 120 permutations", len(index))
	}
	checkUniform(t, "permutations of 5", counts)
}

func TestShuffleOfManyIsUniform(t *testing.T) {
	for _, n := range []int{4097, 4225, 5000, 1_000_000, 1_000_000_000, 1 << 62} {
		const cells, seeds, step = 64, 2000, 16
		cell := func(r int) int { return min(cells-1, int(float64(r)/float64(n)*cells)) }
		where := make([]int, cells)
		gap := make([]int, cells)    // from a record to the next one, mod n
		joint := make([]int, 8*8)    // of neighbors
		epochs := make([]int, cells) // from a position's record to that of the next epoch
		corner := make([]int, cells) // record of position 0
		square := make([]int, cells) // gap of positions that a Feistel half apart would relate
		half := int(math.Sqrt(float64(n)))
		buf, next, far := make([]int, step), make([]int, step), make([]int, 1)
		for seed := range seeds {
			seq := sampler.Shuffle{}.Epoch(n, uint64(seed), 0)
			pos := seed % (n - step - half)
			seq.Fill(pos, buf)
			sampler.Shuffle{}.Epoch(n, uint64(seed), 1).Fill(pos, next)
			seq.Fill(pos+half, far)
			square[cell((far[0]-buf[0]+n)%n)]++
			for i, r := range buf {
				where[cell(r)]++
				epochs[cell((next[i]-r+n)%n)]++
				if i > 0 {
					gap[cell((r-buf[i-1]+n)%n)]++
					joint[cell(buf[i-1])/8*8+cell(r)/8]++
				}
			}
			seq.Fill(0, far)
			corner[cell(far[0])]++
		}
		for what, counts := range map[string][]int{"record": where, "gap": gap, "neighbors": joint,
			"next epoch": epochs, "position 0": corner, "half apart": square} {
			checkUniform(t, fmt.Sprintf("n %d: %s", n, what), counts)
		}
	}
}

// TestShuffleKeepsNoNeighbors counts what whole permutations leave in place. A uniform one
// has one of each kind on average, Poisson distributed; a Feistel network of too few rounds
// has more or fewer, at distances of 1 and of its lower half.
func TestShuffleKeepsNoNeighbors(t *testing.T) {
	const n, seeds, half = 4225, 4000, 65
	fixed := 0
	moved := map[[2]int]int{{1, 1}: 0, {1, -1}: 0, {1, half}: 0, {half, 1}: 0, {half, half}: 0}
	p := make([]int, n)
	for seed := range uint64(seeds) {
		sampler.Shuffle{}.Epoch(n, seed, 0).Fill(0, p)
		for i, r := range p {
			if r == i {
				fixed++
			}
		}
		for m := range moved {
			moved[m] += countMoved(p, m[0], m[1])
		}
	}
	check := func(what string, got int, want float64) {
		if math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
			t.Errorf("%d %s in %d permutations; want %.0f", got, what, seeds, want)
		}
	}
	check("fixed points", fixed, seeds)
	for m, got := range moved {
		d, e := float64(m[0]), math.Abs(float64(m[1]))
		check(fmt.Sprintf("neighbors at distance %d that go to distance %d", m[0], m[1]), got, seeds*(n-d)*(n-e)/n/(n-1))
	}
}

// countMoved counts the positions that are from apart and whose records are to apart.
func countMoved(p []int, from, to int) (n int) {
	for i := from; i < len(p); i++ {
		if p[i] == p[i-from]+to {
			n++
		}
	}
	return n
}

func BenchmarkShuffle(b *testing.B) {
	for _, n := range []int{4096, 1_000_000, 1_000_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			seq := sampler.Shuffle{}.Epoch(n, 1, 1)
			dst := make([]int, 256)
			pos := 0
			for b.Loop() {
				seq.Fill(pos, dst)
				pos = (pos + len(dst)) % (n - len(dst))
			}
			b.ReportMetric(float64(b.N*len(dst))/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkShuffleSetUp(b *testing.B) {
	for _, n := range []int{100, 4096, 1_000_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sampler.Shuffle{}.Epoch(n, 1, 1)
			}
		})
	}
}
