package sampler

import "math"

// Randomness measures how varied the batches of a Sampler are: 0 if each holds records that are next to each other in the
// dataset, 1 if they are spread over it as by an exact shuffle. It divides the dataset into batch equal regions, counts the
// regions that a batch of that many records touches, and compares the mean of up to 256 batches with the expectation for a
// uniform batch, batch*(1-(1-1/batch)^batch). In a dataset that is sorted by class, this is how many classes a batch sees.
// The noise is below 0.02.
//
// together is how many successive batches count as one. The batches of a [ChunkShuffle] may each be as varied as the batches
// of Shuffle, and successive batches still be of the same chunks.
func Randomness(s Sampler, n, batch, together int, seed uint64) float64 {
	batch *= together
	seq := s.Epoch(n, seed, 0)
	batches := seq.Len() / max(1, batch)
	if batch < 2 || batches == 0 {
		return 0
	}
	sample := min(batches, max(8, min(256, (1<<16)/batch)))
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
