package loader

import (
	"fmt"
	"math"
)

// RunShuffle shuffles runs of Run consecutive records, and leaves each run in the order of
// the dataset. With Run a multiple of BatchSize every batch lies within one run, and is a
// view of the Source's memory; with a smaller Run, batches are gathered in fewer and larger
// pieces. The price is in how random it is, which Randomness measures: records that were
// neighbours in the dataset stay so. In a dataset that was shuffled when it was made, that
// does no harm.
//
// If Run does not divide the number of records, the records that are left over come last,
// whole as one shorter run. Which ones these are is drawn for each epoch.
type RunShuffle struct {
	Run int // records in a run; 0 and 1 shuffle exactly
}

// Epoch returns the permutation that belongs to (Run, n, seed, epoch). It needs at most
// 8 KiB.
func (o RunShuffle) Epoch(n int, seed uint64, epoch int) Sequence {
	if o.Run <= 1 {
		return Shuffle{}.Epoch(n, seed, epoch)
	}
	runs, tail := n/o.Run, n%o.Run
	r := splitMix(epochKey(seed, epoch, runKey))
	return runSequence{
		runs: Shuffle{}.Epoch(runs, seed, epoch), run: o.Run, tail: tail,
		cut: int(r.below(uint64(runs+1))) * o.Run,
	}
}

// ID returns "runs(256)" for runs of 256 records.
func (o RunShuffle) ID() string { return fmt.Sprintf("runs(%d)", max(1, o.Run)) }

// runKey is the number of the key that places the tail.
const runKey = 1<<16 + 1

type runSequence struct {
	runs      Sequence
	run, tail int
	cut       int // the tail is records [cut, cut+tail)
}

func (s runSequence) Len() int { return s.runs.Len()*s.run + s.tail }

func (s runSequence) Fill(pos int, dst []int) {
	for len(dst) > 0 {
		first, in, n := s.at(pos)
		n = min(n-in, len(dst))
		for i := range n {
			dst[i] = first + in + i
		}
		pos, dst = pos+n, dst[n:]
	}
}

func (s runSequence) runAt(pos, n int) (first int, ok bool) {
	first, in, of := s.at(pos)
	return first + in, in+n <= of
}

// at returns the run that position pos lies in: its first record, the place of pos in it,
// and its length.
func (s runSequence) at(pos int) (first, in, n int) {
	k := pos / s.run
	if k == s.runs.Len() {
		return s.cut, pos % s.run, s.tail
	}
	first = one(s.runs, k) * s.run
	if first >= s.cut {
		first += s.tail
	}
	return first, pos % s.run, s.run
}

// one returns what is at one position of a Shuffle, without memory.
func one(s Sequence, pos int) int {
	if t, ok := s.(table); ok {
		return int(t[pos])
	}
	return int(s.(*bijection).at(uint64(pos)))
}

// Randomness measures how varied the batches of an order are: 0 if each holds records that
// lie next to each other in the dataset, 1 if they are spread over it as those of an exact
// shuffle are. It divides the dataset into batch equal regions, counts those that a batch
// of that many records touches, and compares the mean of up to 256 batches with what is
// expected of a uniform one, batch*(1-(1-1/batch)^batch). In a dataset that is sorted by
// class, this is how many classes a batch sees. The noise is below 0.02.
func Randomness(o Order, n, batch int, seed uint64) float64 {
	seq := o.Epoch(n, seed, 0)
	batches := seq.Len() / max(1, batch)
	if batch < 2 || batches == 0 {
		return 0
	}
	sample := min(batches, 256)
	dst, seen := make([]int, batch), make([]bool, batch)
	touched := 0
	for i := range sample {
		seq.Fill(int(float64(i)/float64(sample)*float64(batches))*batch, dst)
		clear(seen)
		for _, r := range dst {
			if region := min(batch-1, int(float64(r)/float64(n)*float64(batch))); !seen[region] {
				seen[region] = true
				touched++
			}
		}
	}
	b := float64(batch)
	expected := b * (1 - math.Pow(1-1/b, b))
	return min(1, max(0, (float64(touched)/float64(sample)-1)/(expected-1)))
}
