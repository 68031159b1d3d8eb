package subset

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sets are sets of numbers from 0 to n-1 by name: those that few, some and most are in, long runs, and gaps of all
// lengths.
func sets(n int) map[string]func(i int) bool {
	rng := rand.New(rand.NewPCG(3, 4))
	random := func(share float64) func(int) bool { return func(int) bool { return rng.Float64() < share } }
	half := random(0.5)
	return map[string]func(int) bool{
		"all": random(1), "0.999": random(0.999), "0.9": random(0.9), "0.6": random(0.6), "0.5": half, "0.1": random(0.1),
		"0.0002": random(0.0002), "first and last": func(i int) bool { return i == 0 || i == n-1 },
		"runs":  func(i int) bool { return i/1000%3 == 1 },
		"mixed": func(i int) bool { return i < n/3 || i > n/2 && half(i) || i == n-2 },
	}
}

func TestIndex(t *testing.T) {
	for _, n := range []int{1, 64, 191, 192, 193, 100_007} {
		for name, in := range sets(n) {
			words, members := make([]uint64, (n+63)/64), []int(nil)
			for i := range n {
				if in(i) {
					words[i/64] |= 1 << (i % 64)
					members = append(members, i)
				}
			}
			t.Run(fmt.Sprint(n, name), func(t *testing.T) { checkIndex(t, New(words), members, n) })
		}
	}
}

func checkIndex(t *testing.T, x *Index, members []int, n int) {
	if x.Len() != len(members) {
		t.Fatalf("%d members, want %d", x.Len(), len(members))
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(members))
	for k, got := range x.AppendAt(nil, order) {
		if got != members[order[k]] {
			t.Fatalf("member %d is %d, want %d", order[k], got, members[order[k]])
		}
	}
	next := 0
	for number := range n {
		if got := x.Before(number); got != next {
			t.Fatalf("%d members before %d, want %d", got, number, next)
		}
		if next < len(members) && members[next] == number {
			next++
		}
	}
	end := 0
	for i, first := range members {
		for end = max(end, i+1); end < len(members) && members[end] == first+end-i; {
			end++
		}
		for _, to := range []int{i + 1, min(i+70, len(members)), min(i+70_000, len(members))} {
			if to > i+70 && i%997 > 0 {
				continue // it is slow
			}
			if got, n := x.Run(i, to); got != first || n != min(end, to)-i {
				t.Fatalf("members [%d, %d) begin with %d from %d on, want %d from %d on", i, to, n, got, min(end, to)-i, first)
			}
		}
	}
}

// BenchmarkAt finds members in a shuffled order: of 10^7 numbers, those that are in the set by chance.
func BenchmarkAt(b *testing.B) {
	const n = 10_000_000
	for _, share := range []float64{0.999, 0.99, 0.9, 0.5, 0.1} {
		b.Run(fmt.Sprint(share), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(3, 4))
			words := make([]uint64, (n+63)/64)
			for i := range n {
				if rng.Float64() < share {
					words[i/64] |= 1 << (i % 64)
				}
			}
			x := New(words)
			order, batch := rng.Perm(x.Len()), make([]int, 0, 256)
			b.ResetTimer()
			for i := 0; i < b.N; i += 256 {
				k := i % (len(order) - 256)
				batch = x.AppendAt(batch[:0], order[k:k+256])
			}
		})
	}
}
