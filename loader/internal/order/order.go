// Package order says which records a rank has in each step of an epoch: it divides the positions of a Sampler's epoch
// into global batches, and each global batch among the ranks. The result is a function of the step.
package order

import "github.com/penstock/penstock/loader/sampler"

// Shares says how the positions of an epoch are divided among ranks and steps.
type Shares struct {
	Batch    int  // positions of a rank in a step
	Rank     int  // whose epochs these are
	Ranks    int  // of all
	DropLast bool // leave out a last global batch that is not full
	Last     Last // how a last global batch is divided that is not full
}

// Last says how the last global batch is divided if it is not full.
type Last int

const (
	Equal  Last = iota // all ranks have as many positions; the last few may be beyond the end
	Full               // each rank has Batch positions; many may be beyond the end
	Uneven             // as Full, without those beyond the end: the last ranks have fewer, or none and a step less
)

// Global returns the number of positions of one step over all ranks.
func (s Shares) Global() int { return s.Batch * s.Ranks }

// Steps returns how many steps this rank takes over n positions.
func (s Shares) Steps(n int) int {
	whole, rest := n/s.Global(), n%s.Global()
	switch {
	case rest == 0 || s.DropLast || s.Last == Uneven && rest <= s.Rank*s.Batch:
		return whole
	}
	return whole + 1
}

// Epoch is the part of one epoch that one rank takes. It never changes, and several goroutines may
// use it.
type Epoch struct {
	Number  int
	Steps   int
	Records int // positions of all ranks

	shares Shares
	seq    sampler.Sequence
	runs   sampler.SliceSequence // nil if seq is none, or steps that follow each other may not have positions that do
	own    sampler.Batches       // nil if steps have the same number of positions
}

// New returns an epoch in the order of seq.
func New(shares Shares, number int, seq sampler.Sequence) *Epoch {
	e := &Epoch{Number: number, Records: seq.Len(), shares: shares, seq: seq}
	e.Steps = shares.Steps(e.Records)
	if e.own = sampler.BatchesOf(seq, shares.DropLast); e.own != nil {
		e.Steps = e.own.Len()
	} else {
		e.runs, _ = seq.(sampler.SliceSequence)
	}
	return e
}

// Slice returns the positions of this rank in a step: n positions from pos on. The last pad of them
// are beyond the end of the epoch, or beyond the end of a batch that the sequence itself made.
// Every step is computed on its own, so that workers may begin anywhere and a resumed run need not
// repeat the steps before.
func (e *Epoch) Slice(step int) (pos, n, pad int) {
	if e.own != nil {
		first, of := e.own.At(step)
		n = (of + e.shares.Ranks - 1) / e.shares.Ranks
		at := e.shares.Rank * n
		return first + at%of, n, min(n, max(0, at+n-of))
	}
	global := e.shares.Global()
	start := step * global
	left := min(global, e.Records-start)
	n = (left + e.shares.Ranks - 1) / e.shares.Ranks
	if e.shares.Last != Equal {
		n = e.shares.Batch
	}
	pos = start + e.shares.Rank*n
	if e.shares.Last == Uneven {
		return pos, min(n, start+left-pos), 0
	}
	return pos, n, min(n, max(0, pos+n-start-left))
}

// Span is Slice for several consecutive steps of one rank.
func (e *Epoch) Span(step, steps int) (pos, n, pad int) {
	pos, n, pad = e.Slice(step)
	if steps > 1 {
		last, m, lastPad := e.Slice(step + steps - 1)
		n, pad = last+m-pos, lastPad
	}
	return pos, n, pad
}

// Choose sets dst to the records at the positions from pos on. The last pad of them repeat the
// epoch, or the sequence's own batch, from its start.
func (e *Epoch) Choose(pos, pad int, dst []int) {
	real := len(dst) - pad
	if real > 0 {
		e.seq.Fill(pos, dst[:real])
	}
	first, n := 0, e.Records
	if e.own != nil && pad > 0 {
		first, n = e.own.Of(pos)
	}
	for i := real; i < len(dst); i++ {
		e.seq.Fill(first+(pos+i-first)%n, dst[i:i+1])
	}
}

// RunAt returns the first record of n positions from pos on if the sequence knows, without listing
// them, that their records are consecutive. Padded positions are not.
func (e *Epoch) RunAt(pos, n, pad int) (first int, ok bool) {
	if e.runs == nil || pad > 0 || n == 0 {
		return 0, false
	}
	return e.runs.SliceAt(pos, n)
}

// RunOf is RunAt for any Sequence. It lists the records in next, which has room for n. A shuffled
// order shows in the first two records, so that most calls stop there.
func (e *Epoch) RunOf(next []int, pos, n, pad int) (first int, is bool) {
	next = next[:n]
	if front := next[:min(2, n)]; pad == 0 {
		// most steps that are not runs show in the first two records; the others need not be listed here, since the
		// caller lists all records when it makes the step
		e.Choose(pos, 0, front)
		if RunLength(front) < len(front) {
			return 0, false
		}
	}
	e.Choose(pos, pad, next)
	return next[0], RunLength(next) == n
}

// RunLength returns how many record numbers from the first on are consecutive.
func RunLength(indices []int) int {
	first := indices[0]
	for n, r := range indices {
		if r != first+n {
			return n
		}
	}
	return len(indices)
}

// Outside returns the place of the first record that is not in a Source of n, or -1.
func Outside(indices []int, n int) int {
	for i, r := range indices {
		if uint(r) >= uint(n) {
			return i
		}
	}
	return -1
}

// Consecutive sets dst to first, first+1, ... Eight numbers at a time, without a bounds check each.
func Consecutive(first int, dst []int) {
	for ; len(dst) >= 8; dst, first = dst[8:], first+8 {
		d := (*[8]int)(dst)
		d[0], d[1], d[2], d[3] = first, first+1, first+2, first+3
		d[4], d[5], d[6], d[7] = first+4, first+5, first+6, first+7
	}
	for i := range dst {
		dst[i] = first + i
	}
}
