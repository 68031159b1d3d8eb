package main

import (
	"github.com/penstock/penstock/loader/sampler"
)

// fold is a sampler.Sampler over a part of the records: all but every k-th record, or only
// every k-th. Datasets made from image folders are sorted by class, so that a cut in one
// place would hold out whole classes; every k-th record takes its share of each.
type fold struct {
	k     int
	held  bool            // only every k-th, not the others
	inner sampler.Sampler // of the records in the part
}

// Epoch implements sampler.Sampler.
func (f fold) Epoch(n int, seed uint64, epoch int) sampler.Sequence {
	m := n / f.k
	if !f.held {
		m = n - m
	}
	return foldSequence{f.inner.Epoch(m, seed, epoch), f}
}

type foldSequence struct {
	sampler.Sequence // positions within the part
	fold             fold
}

// Fill implements sampler.Sequence.
func (s foldSequence) Fill(pos int, dst []int) {
	s.Sequence.Fill(pos, dst)
	for i, j := range dst {
		dst[i] = s.fold.record(j)
	}
}

// record returns the j-th record of the part. Held out are records k-1, 2k-1, ...
func (f fold) record(j int) int {
	if f.held {
		return j*f.k + f.k - 1
	}
	return j + j/(f.k-1)
}
