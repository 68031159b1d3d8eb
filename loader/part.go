package loader

import "github.com/penstock/penstock/loader/sampler"

// part is one epoch of a pass, and the slice of it that this rank takes.
type part struct {
	opts    *Options
	number  int
	seq     sampler.Sequence
	runs    sampler.SliceSequence // nil if seq is none
	records int                   // positions of seq
	steps   int                   // batches
	from    int                   // step that comes first: not 0 after Resume
	first   int                   // tick of that step
	taken   ticks
}

// part returns epoch number, to be delivered from a step on.
func (ld *Loader) part(number, from int) *part {
	t := &part{opts: &ld.opts, number: number, seq: ld.sequence(number), from: from}
	t.records = t.seq.Len()
	t.runs, _ = t.seq.(sampler.SliceSequence)
	t.steps = max(from, ld.opts.batches(t.records))
	return t
}

// end returns the tick after the last of the part.
func (t *part) end() int { return t.first + t.steps - t.from }

// step returns the number of the batch that has a tick.
func (t *part) step(tick int) int { return tick - t.first + t.from }

// slice returns the positions of this rank in a step: n from pos on, of which the last pad
// lie beyond the end of the epoch. All ranks have the same n.
func (t *part) slice(step int) (pos, n, pad int) {
	global := t.opts.global()
	start := step * global
	left := min(global, t.records-start)
	n = (left + t.opts.World.Size - 1) / t.opts.World.Size
	pos = start + t.opts.World.Rank*n
	return pos, n, min(n, max(0, pos+n-start-left))
}

// choose sets dst to the records of the positions from pos on, the last pad of which repeat
// the epoch from its start.
func (t *part) choose(pos, pad int, dst []int) {
	real := len(dst) - pad
	if real > 0 {
		t.seq.Fill(pos, dst[:real])
	}
	for i := real; i < len(dst); i++ {
		t.seq.Fill((pos+i)%t.records, dst[i:i+1])
	}
}

// runAt returns the first record of n positions from pos on, the last pad of which lie beyond the
// end, if it is known at once that they are one run.
func (t *part) runAt(pos, n, pad int) (first int, ok bool) {
	if t.runs == nil || pad > 0 || n == 0 {
		return 0, false
	}
	return t.runs.SliceAt(pos, n)
}

// maxReach is how far Unordered lets a batch be delivered before an earlier one: so many
// bits are in a State.
const maxReach = 64

// ticks is a set of the ticks from the first one on that was not delivered.
type ticks uint64

func (t ticks) has(i int) bool { return i < maxReach && t>>i&1 == 1 }
func (t *ticks) add(i int)     { *t |= 1 << i }

// shift makes what was i+1 be i.
func (t *ticks) shift() { *t >>= 1 }
