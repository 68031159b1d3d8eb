// Package permute computes random permutations position by position, as pure functions of a seed and an epoch: the same
// on every machine, in every version. The order of a shuffled epoch and of a shuffled dataset come from here.
//
// A [Permutation] gives the record at a position without a list of all records: a Feistel cipher over the positions
// (feistel.go) takes constant memory for 10^9 records, and a small permutation is a table. A rank, a worker, or a
// loader that resumes in the middle of an epoch starts at any position at once. [Reused] permutes in memory that is
// used again, and [Rand] is the generator below both. Its output must never change: it would reorder the epochs of every saved
// state.
package permute

// Permutation is a permutation of [0, Len). Several goroutines may use it at once.
type Permutation interface {
	// Len returns the number of positions.
	Len() int

	// At returns the element at position pos.
	At(pos int) int

	// Fill sets dst[i] to the element at position pos+i. It does not allocate.
	Fill(pos int, dst []int)

	// Map replaces each position in x by the value at that position. It does not allocate.
	Map(x []int)
}

// New returns the permutation of [0, n) that belongs to (n, seed, epoch): (0, 1) and (1, 0) are
// not related. It takes a few microseconds and at most 8 KiB, whatever n is.
func New(n int, seed uint64, epoch int) Permutation {
	if n <= maxTable {
		return newTable(n, seed, epoch)
	}
	return newFeistel(n, seed, epoch)
}
