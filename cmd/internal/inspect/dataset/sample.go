package dataset

import (
	"math/rand/v2"
	"slices"
)

// Sample draws count of the numbers below n, in order, in memory for count (Floyd).
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
