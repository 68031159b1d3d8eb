package main

import (
	"github.com/penstock/penstock/loader/sampler"
)

// golden is a stretch of an epoch's order, as package loader has it.
type golden struct {
	N      int    `json:"n"`
	Seed   uint64 `json:"seed"`
	Epoch  int    `json:"epoch"`
	Run    int    `json:"run"`
	First  int    `json:"first"` // position of the first value
	Values []int  `json:"values"`
}

// goldens are small and large datasets; few and many epochs; seeds of all bits.
func goldens() []golden {
	var out []golden
	for _, n := range []int{1, 2, 17, 4096, 4097, 5000, 65536, 1_000_003, 1_000_000_000, 1 << 40} {
		for _, seed := range []uint64{0, 42, 1<<64 - 1} {
			for _, epoch := range []int{0, 1, 1 << 40} {
				for _, run := range []int{1, 256} {
					out = append(out, stretch(n, seed, epoch, run))
				}
			}
		}
	}
	return out
}

// stretch is taken from the end: with runs, it contains the last one, which is shorter.
func stretch(n int, seed uint64, epoch, run int) golden {
	first := max(0, n-12)
	g := golden{N: n, Seed: seed, Epoch: epoch, Run: run, First: first, Values: make([]int, n-first)}
	sampler.Block{Size: run}.Epoch(n, seed, epoch).Fill(first, g.Values)
	return g
}
