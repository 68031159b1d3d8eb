package dataset

import (
	"math/rand/v2"
	"slices"
)

// Sample draws count distinct numbers below n and returns them in ascending order. It takes memory
// for count numbers and not for n: Floyd's algorithm, from Bentley and Floyd, "A sample of
// brilliance", Communications of the ACM 30(9), 1987.
func Sample(rng *rand.Rand, n, count int) []int {
	taken := make(map[int]bool, count)
	out := make([]int, 0, count)
	for i := n - count; i < n; i++ {
		r := rng.IntN(i + 1)
		if taken[r] {
			r = i
		}
		taken[r] = true
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}
