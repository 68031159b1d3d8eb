package sampler

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
)

// ChunkShuffle visits records that are pieces of chunked arrays in a random order that decodes each
// chunk about once an epoch. Windows of a weather field in HDF5 or Zarr are such records: Shuffle
// would decode all chunks of a window for this window alone.
//
// A process has several lanes. Each lane walks through chunks that are drawn at random, and
// shuffles the records of a chunk. Every batch has records of all lanes, or of as many lanes as it
// has records. If records reach into the next chunks, a lane takes some chunks in their order, so
// that it decodes only one new chunk when it moves on. Batches are as varied as batches of Shuffle
// if there are as many lanes as records in a batch; [Randomness] measures that. Successive batches
// together are less varied.
//
// Like all Samplers, ChunkShuffle is a function of (seed, epoch, position). It keeps 8 bytes for
// each run of chunks in an epoch.
type ChunkShuffle struct {
	plan   ChunkPlan
	axes   []ChunkAxis // whose cells are the groups of the plan
	fields []ChunkField
	of     ChunkOptions
	n      int
	cell   float64 // records of a cell, on average
	id     string

	parts []chunkPart // of several Sources, in place of all but plan, of, n and id

	// Of records that are listed: their numbers by cell, and where each cell begins.
	sorted []int
	starts []int
}

var _ interface {
	Identifier
	Validator
} = (*ChunkShuffle)(nil)

// NewChunkShuffle returns the Sampler of records that lie in chunks. If the memory is too small,
// the error says how much would be enough.
func NewChunkShuffle(c Chunks, o ChunkOptions) (*ChunkShuffle, error) {
	o.Ranks = max(1, o.Ranks)
	if o.Memory == 0 {
		o.Memory = DefaultChunkMemory
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("sampler: chunk shuffle: %w", err)
	}
	switch {
	case o.Batch <= 0:
		return nil, fmt.Errorf("sampler: chunk shuffle: Batch is %d; it must be BatchSize times World.Size", o.Batch)
	case o.Batch < o.Ranks || o.Batch%o.Ranks != 0:
		return nil, fmt.Errorf("sampler: chunk shuffle: a batch of all processes has %d records, which cannot be divided "+
			"evenly among %d ranks; choose a multiple", o.Batch, o.Ranks)
	case o.Memory < 0 || o.Lanes < 0 || o.Run < 0:
		return nil, fmt.Errorf("sampler: chunk shuffle: memory %d, lanes %d and run %d; none may be negative", o.Memory,
			o.Lanes, o.Run)
	}
	s, err := newChunkShuffle(c, o)
	if err != nil {
		return nil, fmt.Errorf("sampler: chunk shuffle: %w", err)
	}
	return s, nil
}

func newChunkShuffle(c Chunks, o ChunkOptions) (*ChunkShuffle, error) {
	if c.Len() < o.Ranks {
		return nil, fmt.Errorf("%d records for %d ranks", c.Len(), o.Ranks)
	}
	if c.Parts != nil {
		return newParts(c, o)
	}
	plan, err := newChunkPlan(&c, o)
	if err != nil {
		return nil, err
	}
	s := &ChunkShuffle{plan: plan, of: o, n: c.Len(), fields: slices.Clone(c.Fields)}
	for f := range s.fields {
		s.fields[f].Needs = make([][]ChunkRange, len(c.Axes))
	}
	for a := range c.Axes {
		axis, needs := c.merged(a, plan.Groups[a])
		s.axes = append(s.axes, axis)
		for f := range s.fields {
			s.fields[f].Needs[a] = needs[f]
		}
	}
	if c.Cells != nil {
		s.list(&c)
	}
	s.cell = float64(s.n) / float64((&Chunks{Axes: s.axes, Cells: s.listed(&c)}).occupied())
	s.id = fmt.Sprintf("chunk-shuffle(%d,%d,%d,%d,%s)", plan.Lanes, plan.Run, o.Batch, o.Ranks,
		digest.Of(s.n, plan.Axis, plan.Groups, s.axes, c.Cells))
	return s, nil
}

// listed returns the cells of listed records as numbers of the plan's groups; nil if the records
// are not listed.
func (o *ChunkShuffle) listed(c *Chunks) []int {
	if c.Cells == nil {
		return nil
	}
	out := make([]int, len(c.Cells))
	for i, cell := range c.Cells {
		out[i] = o.regrouped(c, cell)
	}
	return out
}

// regrouped returns the number of the group that a cell of c belongs to. The axis of runs counts
// fastest in these numbers, so that the groups of a lane's run have consecutive numbers.
func (o *ChunkShuffle) regrouped(c *Chunks, cell int) int {
	at := make([]int, len(c.Axes))
	for a := len(c.Axes) - 1; a >= 0; a-- {
		n := c.Axes[a].cells()
		at[a], cell = cell%n/o.plan.Groups[a], cell/n
	}
	rest := 0
	for a, k := range at {
		if a != o.plan.Axis {
			rest = rest*o.axes[a].cells() + k
		}
	}
	return rest*o.along() + at[o.plan.Axis]
}

// list sorts listed records by cell, by counting.
func (o *ChunkShuffle) list(c *Chunks) {
	cells := o.listed(c)
	o.starts = make([]int, o.others()*o.along()+1)
	for _, cell := range cells {
		o.starts[cell+1]++
	}
	for k := range len(o.starts) - 1 {
		o.starts[k+1] += o.starts[k]
	}
	next := slices.Clone(o.starts)
	o.sorted = make([]int, len(cells))
	for i, cell := range cells {
		o.sorted[next[cell]] = i
		next[cell]++
	}
}

// along returns how many cells the axis of runs has; others returns how many the other axes have
// together.
func (o *ChunkShuffle) along() int { return o.axes[o.plan.Axis].cells() }

func (o *ChunkShuffle) others() int {
	n := 1
	for a := range o.axes {
		if a != o.plan.Axis {
			n *= o.axes[a].cells()
		}
	}
	return n
}

// Plan returns how the Sampler works and what its order costs.
func (o *ChunkShuffle) Plan() ChunkPlan { return o.plan }

// Needs returns the chunks along each axis that a lane needs of a field while it is at a cell. The
// cell has a number on each axis of Chunks. ok is false for a field that is not in Chunks.
func (o *ChunkShuffle) Needs(field string, cell []int, dst []ChunkRange) (needs []ChunkRange, ok bool) {
	i := slices.IndexFunc(o.fields, func(f ChunkField) bool { return f.Name == field })
	if i < 0 {
		return dst, false
	}
	for a, k := range cell {
		r := ChunkRange{}
		if of := o.fields[i].Needs[a]; of != nil {
			r = of[k/o.plan.Groups[a]]
		}
		dst = append(dst, r)
	}
	return dst, true
}

// ID identifies the plan: another plan is another order, which a State must not be resumed with.
func (o *ChunkShuffle) ID() string { return o.id }

// Validate refuses a Source whose number of records differs from the plan's.
func (o *ChunkShuffle) Validate(n int) error {
	if n != o.n {
		return fmt.Errorf("ChunkShuffle: planned for %d records, and there are %d", o.n, n)
	}
	return nil
}

// Keys of the random numbers that a ChunkShuffle draws.
const (
	chunkRunKey = 1<<16 + 6 + iota
	chunkShiftKey
	chunkCellKey
	chunkRoundKey
)

// Epoch returns the order of an epoch.
func (o *ChunkShuffle) Epoch(n int, seed uint64, epoch int) Sequence {
	if o.plan.Lanes == 0 {
		return Shuffle{}.Epoch(n, seed, epoch)
	}
	if o.parts != nil {
		return &partsSequence{o, newPartsLine(o, seed, epoch)}
	}
	return o.chunks(seed, epoch)
}

// chunks returns an epoch in which lanes walk through chunks. The first run along the axis is
// shortened at random, so that runs begin at other chunks in each epoch.
func (o *ChunkShuffle) chunks(seed uint64, epoch int) *chunkSequence {
	s := &chunkSequence{by: o, size: o.n / o.of.Ranks, each: o.of.Batch / o.of.Ranks,
		cells: permute.Key(seed, epoch, chunkCellKey), rounds: permute.Key(seed, epoch, chunkRoundKey)}
	s.first = int(permute.Below(permute.Key(seed, epoch, chunkShiftKey), uint64(o.plan.Run)))
	s.runs = (o.along()-s.first+o.plan.Run-1)/o.plan.Run + min(1, s.first)
	s.seed, s.epoch = permute.Key(seed, epoch, chunkRunKey), epoch
	s.setLanes()
	return s
}

// chunkSequence is an epoch. All records lie on a line: run after run in random order, the cells of
// a run in their order, and the records of a cell in random order. The line is divided evenly among
// the ranks, and each rank's part among its lanes. order and ends are made once, at the first Fill;
// once makes that safe for several goroutines.
type chunkSequence struct {
	by            *ChunkShuffle
	size, each    int // of a rank: records, and records of a batch
	lane, last    int // records of a lane, and of the last one
	first, runs   int // cells of the first run along the axis, if it is shorter; runs along the axis
	cells, rounds uint64
	seed          uint64
	epoch         int

	once  sync.Once
	order permute.Permutation
	ends  []int // records in the runs of the line up to each
}

// setLanes divides the line of a rank among its lanes. Lanes should move to their next cells at
// different times, because decoding all their chunks for one batch would delay it. So each lane but
// the last is longer than the even share by a part of a cell.
func (s *chunkSequence) setLanes() {
	lanes := s.by.plan.Lanes
	even := (s.size + lanes - 1) / lanes
	s.lane = even
	if apart := s.by.cell / float64(lanes); apart >= 1 {
		more := math.Mod(apart-math.Mod(float64(even), s.by.cell)+s.by.cell, s.by.cell)
		if longer := even + int(more); s.size-(lanes-1)*longer > even/2 {
			s.lane = longer
		}
	}
	s.last = s.size - (lanes-1)*s.lane
	for s.last < 0 { // of few records
		s.lane--
		s.last += lanes - 1
	}
}

func (s *chunkSequence) Len() int { return s.by.n }

// Fill computes every position without the positions before it, as each Sequence must.
func (s *chunkSequence) Fill(pos int, dst []int) {
	for i := range dst {
		if rank, k := s.by.spot(pos+i, s.size); rank < 0 {
			dst[i] = s.left(k)
		} else {
			dst[i] = s.of(rank, k)
		}
	}
}

func (s *chunkSequence) share() int { return s.size }

func (s *chunkSequence) of(rank, i int) int {
	s.once.Do(s.layRuns)
	return s.record(s.onLane(rank, i))
}

func (s *chunkSequence) left(i int) int {
	s.once.Do(s.layRuns)
	return s.record(s.size*s.by.of.Ranks + i)
}

// layRuns puts the runs one after the other, in random order, and sets ends to the sums of their
// records: lanes are pieces of this line.
func (s *chunkSequence) layRuns() {
	n := s.runs * s.by.others()
	s.order = permute.New(n, s.seed, s.epoch)
	s.ends = make([]int, n)
	s.order.Fill(0, s.ends)
	at := 0
	for i, run := range s.ends {
		other, lo, hi := s.run(run)
		at += s.records(other, lo, hi)
		s.ends[i] = at
	}
}

// run returns the cells of a run: [lo, hi) on the axis of runs, and the number of its cell on the
// other axes.
func (s *chunkSequence) run(number int) (other, lo, hi int) {
	other, r := number/s.runs, number%s.runs
	if s.first > 0 {
		if r == 0 {
			return other, 0, s.first
		}
		r--
	}
	lo = s.first + r*s.by.plan.Run
	return other, lo, min(lo+s.by.plan.Run, s.by.along())
}

// records returns how many records the cells [lo, hi) of a run have.
func (s *chunkSequence) records(other, lo, hi int) int {
	if s.by.sorted != nil {
		at := other * s.by.along()
		return s.by.starts[at+hi] - s.by.starts[at+lo]
	}
	cuts := s.by.axes[s.by.plan.Axis].Cuts
	return (cuts[hi] - cuts[lo]) * s.beside(other)
}

// beside returns how many records there are for each origin on the axis of runs.
func (s *chunkSequence) beside(other int) int {
	n := 1
	for a := len(s.by.axes) - 1; a >= 0; a-- {
		if a == s.by.plan.Axis {
			continue
		}
		axis := &s.by.axes[a]
		k := other % axis.cells()
		other /= axis.cells()
		n *= axis.Cuts[k+1] - axis.Cuts[k]
	}
	return n
}

// spot returns which rank reads a position, and how many records the rank read before it in the
// epoch; size is the number of records of each rank. The rank is -1 for the last few records, which
// cannot be divided evenly.
func (o *ChunkShuffle) spot(pos, size int) (rank, i int) {
	each := o.of.Batch / o.of.Ranks
	steps := size / each // with the full share of every rank
	if pos < steps*o.of.Batch {
		step, in := pos/o.of.Batch, pos%o.of.Batch
		return in / each, step*each + in%each
	}
	pos -= steps * o.of.Batch
	if left := size - steps*each; pos < left*o.of.Ranks {
		return pos / left, steps*each + pos%left
	} else {
		return -1, pos - left*o.of.Ranks
	}
}

// onLane returns the place on the line of the i-th record of a rank. Lanes take turns, one record
// each; the longer lanes go on when the shorter lanes have ended.
func (s *chunkSequence) onLane(rank, i int) int {
	lanes, before, round := s.by.plan.Lanes, 0, 0
	if short := min(s.lane, s.last); i >= short*lanes { // the shorter lanes have no records left
		before, round = short*lanes, short
		if s.last > s.lane {
			return rank*s.size + (lanes-1)*s.lane + short + i - before
		}
		lanes--
	}
	i -= before
	round += i / lanes
	lane := i % lanes
	if s.each < s.by.plan.Lanes && lanes > 1 { // otherwise every batch would draw from the same lanes
		lane = int(permute.Swap(uint64(lane), uint64(lanes), s.rounds+permute.Mix64(uint64(round))))
	}
	return rank*s.size + lane*s.lane + round
}

// record returns the record at a place of the line.
func (s *chunkSequence) record(at int) int {
	i := sort.SearchInts(s.ends, at+1)
	if i > 0 {
		at -= s.ends[i-1]
	}
	other, lo, hi := s.run(s.order.At(i))
	cell := lo + sort.Search(hi-lo, func(k int) bool { return s.records(other, lo, lo+k+1) > at })
	at -= s.records(other, lo, cell)
	n, number := s.records(other, cell, cell+1), other*s.by.along()+cell
	at = int(permute.Swap(uint64(at), uint64(n), s.cells+permute.Mix64(uint64(number))))
	if s.by.sorted != nil {
		return s.by.sorted[s.by.starts[number]+at]
	}
	return s.number(other, cell, at)
}

// number returns the i-th record of a cell.
func (s *chunkSequence) number(other, cell, i int) int {
	record, scale := 0, 1
	for a := len(s.by.axes) - 1; a >= 0; a-- {
		axis, k := &s.by.axes[a], cell
		if a != s.by.plan.Axis {
			k = other % axis.cells()
			other /= axis.cells()
		}
		n := axis.Cuts[k+1] - axis.Cuts[k]
		record += (axis.Cuts[k] + i%n) * scale
		scale *= axis.Cuts[axis.cells()]
		i /= n
	}
	return record
}
