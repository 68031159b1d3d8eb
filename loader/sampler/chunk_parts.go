package sampler

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/internal/digest"
)

// Chunks of several Sources are Parts. Each part has lanes of its own and a share of the memory, and a process visits
// the parts evenly: after any number of records, each part has had its share of them, to one record.

// chunkPart is one Source's part of the records of a ChunkShuffle.
type chunkPart struct {
	order  *ChunkShuffle // nil if there are no records
	first  int
	places []int // numbers of the records; nil if they follow each other from first on
}

func (p *chunkPart) number(record int) int {
	if p.places != nil {
		return p.places[record]
	}
	return p.first + record
}

// Part returns the order of part i of Chunks, or nil if the part has no records.
func (o *ChunkShuffle) Part(i int) *ChunkShuffle { return o.parts[i].order }

// newParts returns the order of the records of several Sources. Each part gets its own lanes and
// memory: chunks of one Source are useless to records of another.
func newParts(c Chunks, o ChunkOptions) (*ChunkShuffle, error) {
	s := &ChunkShuffle{of: o, n: c.Len()}
	memory, err := divideMemory(c.Parts, o)
	if err != nil {
		return nil, err
	}
	ids := []any{s.n, o.Batch, o.Ranks}
	for i, part := range c.Parts {
		p := chunkPart{places: part.Places}
		if i > 0 {
			p.first = s.parts[i-1].first + c.Parts[i-1].Len()
		}
		if part.Len() > 0 {
			of := o.share(part.Len(), s.n)
			of.Memory = memory[i]
			if p.order, err = newChunkShuffle(part, of); err != nil {
				return nil, fmt.Errorf("source %d: %w", i, err)
			}
			ids = append(ids, p.order.id, part.Places)
			s.plan.add(&p.order.plan)
		}
		s.parts = append(s.parts, p)
	}
	s.plan.Memory, s.plan.Batch = o.Memory, o.Batch/o.Ranks
	s.plan.Decodes /= float64(max(1, s.plan.All))
	s.plan.Shuffle /= float64(max(1, s.plan.All))
	s.id = "chunk-shuffle(" + digest.Of(ids...) + ")"
	return s, nil
}

// share returns the options of a part that has n of all records: its proportion of every batch and
// of the lanes.
func (o ChunkOptions) share(n, all int) ChunkOptions {
	portion := float64(n) / float64(all)
	o.Batch = max(1, int(math.Round(float64(o.Batch/o.Ranks)*portion))) * o.Ranks
	if o.Lanes > 0 {
		o.Lanes = max(1, int(math.Round(float64(o.Lanes)*portion)))
	}
	return o
}

// add adds the cost of a part. Decodes and Shuffle are sums of bytes until all parts are added; the
// caller divides them.
func (p *ChunkPlan) add(part *ChunkPlan) {
	if p.All == 0 || part.Ahead < p.Ahead {
		p.Ahead = part.Ahead
	}
	p.Lanes, p.Run = p.Lanes+part.Lanes, max(p.Run, part.Run)
	p.Bytes, p.All = p.Bytes+part.Bytes, p.All+part.All
	p.Decodes += part.Decodes * float64(part.All)
	p.Shuffle += part.Shuffle * float64(part.All)
}

// divideMemory divides the memory among parts in proportion to the bytes of their chunks. A part
// whose proportion does not hold its lanes gets just enough for them, which leaves less for the
// others, so that the division is repeated until no part is short.
func divideMemory(parts []Chunks, o ChunkOptions) ([]int64, error) {
	n := 0
	for i := range parts {
		n += parts[i].Len()
	}
	all, least, memory := make([]float64, len(parts)), make([]float64, len(parts)), make([]int64, len(parts))
	settled := make([]bool, len(parts))
	total, needed := 0.0, 0.0
	for i := range parts {
		if settled[i] = parts[i].Len() == 0; settled[i] {
			continue
		}
		bytes, lanes := parts[i].memory(o.share(parts[i].Len(), n))
		all[i], least[i] = float64(bytes), lanes
		total, needed = total+all[i], needed+lanes
	}
	if needed > float64(o.Memory) {
		return nil, fmt.Errorf("%s of memory do not hold the chunks of lanes of %d sources; give %s, smaller records, or "+
			"store the arrays in smaller chunks", units.Bytes(o.Memory), len(parts), units.Bytes(int64(needed)+1))
	}
	left := float64(o.Memory)
	for again := true; again; {
		again = false
		for i := range parts {
			if !settled[i] && left*all[i]/total < least[i] {
				memory[i], settled[i], again = int64(least[i]), true, true
				left, total = left-least[i], total-all[i]
			}
		}
	}
	for i := range parts {
		if !settled[i] {
			memory[i] = int64(left * all[i] / total)
		}
	}
	return memory, nil
}

// memory returns the bytes of all chunks, and the least memory with which a ChunkShuffle of these
// options works.
func (c *Chunks) memory(o ChunkOptions) (all int64, least float64) {
	if c.Parts != nil {
		for i := range c.Parts {
			if n := c.Parts[i].Len(); n > 0 {
				bytes, need := c.Parts[i].memory(o.share(n, c.Len()))
				all, least = all+bytes, least+need
			}
		}
		return all, least
	}
	p := newPlanner(c, o)
	each, besides := p.need()
	least = (float64(max(1, o.Lanes))*each+besides)*reserve/(reserve-1) + 2
	if o.Lanes == 0 {
		least = min(least, float64(p.plan.All)*reserve/(reserve-1)+2)
	}
	return p.plan.All, least
}

// chunkLine is the order of a part's records in an epoch: a line that is divided evenly among the
// ranks.
type chunkLine interface {
	share() int         // records of a rank
	of(rank, i int) int // the i-th record of a rank
	left(i int) int     // the i-th of those that cannot be divided evenly
}

// line returns the order of an epoch as a line.
func (o *ChunkShuffle) line(seed uint64, epoch int) chunkLine {
	switch {
	case o.parts != nil:
		return newPartsLine(o, seed, epoch)
	case o.plan.Lanes == 0:
		return shuffledLine{permute.New(o.n, seed, epoch), o.n / o.of.Ranks, o.of.Ranks}
	}
	return o.chunks(seed, epoch)
}

// shuffledLine is the line of a part whose chunks all stay in memory: any order is cheap then.
type shuffledLine struct {
	order       permute.Permutation
	size, ranks int
}

func (l shuffledLine) share() int         { return l.size }
func (l shuffledLine) of(rank, i int) int { return l.order.At(rank*l.size + i) }
func (l shuffledLine) left(i int) int     { return l.order.At(l.ranks*l.size + i) }

// partsLine is the line of several parts.
type partsLine struct {
	o     *ChunkShuffle
	lines []chunkLine
	sizes []int // records of a rank in the parts up to each, from 0 on
	rest  []int // records in the parts up to each that cannot be divided evenly
	key   uint64
}

// Keys of the random numbers that are drawn for parts.
const (
	chunkPartKey = 1<<16 + 32 + iota
	chunkPhaseKey
)

func newPartsLine(o *ChunkShuffle, seed uint64, epoch int) *partsLine {
	l := &partsLine{o: o, sizes: []int{0}, rest: []int{0}, key: permute.Key(seed, epoch, chunkPhaseKey)}
	for i := range o.parts {
		n, size := 0, 0
		var line chunkLine
		if of := o.parts[i].order; of != nil {
			line = of.line(permute.Key(seed, i, chunkPartKey), epoch)
			n, size = of.n, line.share()
		}
		l.lines, l.sizes = append(l.lines, line), append(l.sizes, l.sizes[i]+size)
		l.rest = append(l.rest, l.rest[i]+n-size*o.of.Ranks)
	}
	return l
}

func (l *partsLine) share() int { return l.sizes[len(l.lines)] }

func (l *partsLine) of(rank, i int) int {
	lo, hi := 0, len(l.lines)
	for hi-lo > 1 { // which half of the parts has the i-th record of them
		mid := (lo + hi) / 2
		key := permute.Mix64(l.key + permute.Mix64(uint64(rank)<<32|uint64(lo)<<16|uint64(hi)))
		s := evenly{l.sizes[mid] - l.sizes[lo], l.sizes[hi] - l.sizes[lo], key}
		if before := s.before(i); s.before(i+1) > before {
			hi, i = mid, before
		} else {
			lo, i = mid, i-before
		}
	}
	return l.o.parts[lo].number(l.lines[lo].of(rank, i))
}

func (l *partsLine) left(i int) int {
	part, _ := slices.BinarySearch(l.rest, i+1)
	part--
	return l.o.parts[part].number(l.lines[part].left(i - l.rest[part]))
}

// evenly chooses some of all places, spread as evenly as possible.
type evenly struct {
	some, all int
	key       uint64 // draws the first place
}

// before returns how many of the first i places are chosen. The product needs 128 bits.
func (e evenly) before(i int) int {
	high, low := bits.Mul64(uint64(i), uint64(e.some))
	low, carry := bits.Add64(low, permute.Below(e.key, uint64(e.all)), 0)
	n, _ := bits.Div64(high+carry, low, uint64(e.all))
	return int(n)
}

// partsSequence is the order of an epoch over several parts.
type partsSequence struct {
	*ChunkShuffle
	line *partsLine
}

func (s *partsSequence) Len() int { return s.n }

// Fill computes every position without the positions before it, as each Sequence must.
func (s *partsSequence) Fill(pos int, dst []int) {
	for i := range dst {
		if rank, k := s.spot(pos+i, s.line.share()); rank < 0 {
			dst[i] = s.line.left(k)
		} else {
			dst[i] = s.line.of(rank, k)
		}
	}
}
