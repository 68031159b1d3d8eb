package main

import (
	"github.com/penstock/penstock/loader/sampler"
)

// goldenRegions is the whole of an epoch's order by regions, as package loader has it.
type goldenRegions struct {
	N      int    `json:"n"`
	Seed   uint64 `json:"seed"`
	Epoch  int    `json:"epoch"`
	Count  int    `json:"count"`
	Batch  int    `json:"batch"`
	Run    int    `json:"run"`
	Values []int  `json:"values"`
}

// goldenSplit is a random part of a dataset.
type goldenSplit struct {
	N      int     `json:"n"`
	Seed   uint64  `json:"seed"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Values []int   `json:"values"`
}

// allRegions are regions and batches that divide the records evenly, and that do not.
func allRegions() []goldenRegions {
	var out []goldenRegions
	for _, g := range []goldenRegions{
		{N: 48, Count: 4, Batch: 8}, {N: 50, Count: 4, Batch: 8}, {N: 59, Count: 4, Batch: 12}, {N: 7, Count: 3, Batch: 12},
		{N: 5, Count: 5, Batch: 5}, {N: 103, Count: 1, Batch: 10}, {N: 103, Count: 2, Batch: 8, Run: 5},
	} {
		for _, g.Seed = range []uint64{0, 1<<64 - 1} {
			g.Epoch = 3
			g.Values = make([]int, g.N)
			o := sampler.Regions{Count: g.Count, Batch: g.Batch, Inner: sampler.Block{Size: max(g.Run, 1)}}
			o.Epoch(g.N, g.Seed, g.Epoch).Fill(0, g.Values)
			out = append(out, g)
		}
	}
	return out
}

// allSplits are parts that round, and one of a larger dataset.
func allSplits() []goldenSplit {
	var out []goldenSplit
	for _, s := range []goldenSplit{{N: 25, To: 0.9}, {N: 25, From: 0.9, To: 1}, {N: 5000, Seed: 42, From: 0.25, To: 0.2521}} {
		q := sampler.Split{Seed: s.Seed, From: s.From, To: s.To}.Epoch(s.N, 0, 0)
		s.Values = make([]int, q.Len())
		q.Fill(0, s.Values)
		out = append(out, s)
	}
	return out
}
