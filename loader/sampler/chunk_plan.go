package sampler

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/units"
)

// ChunkOptions says what a [ChunkShuffle] may take. The zero value of every field but Batch is usable.
type ChunkOptions struct {
	Memory int64 // bytes of decoded chunks of a process; 0 means DefaultChunkMemory
	Batch  int   // records of a global batch, Options.BatchSize times World.Size; a multiple of Ranks
	Ranks  int   // processes, each with its own lanes: World.Size, or a multiple of it; 0 means 1

	Lanes int // of a process; 0 means as many as Memory holds, up to twice its records of a batch
	Run   int // cells that a lane walks along the axis of the largest windows; 0 means as many as cost 1/16 more decodes
}

// DefaultChunkMemory is the memory of a [ChunkShuffle] whose options name none: 1 GiB.
const DefaultChunkMemory = 1 << 30

// ChunkPlan describes the plan of a [ChunkShuffle] and its cost.
type ChunkPlan struct {
	Lanes  int   // walks of a process through chunks, which take turns; 0: all chunks stay in memory, and the order is a Shuffle's
	Run    int   // cells that a lane walks in their order
	Axis   int   // the axis along which lanes walk
	Groups []int // cells, by axis, whose records are shuffled together
	Batch  int   // records of a process in a batch

	Bytes   int64   // of decoded chunks that a process has at a time
	Memory  int64   // that it may have
	All     int64   // bytes of all chunks that records need
	Decodes float64 // how often an epoch decodes a chunk, on average
	Shuffle float64 // how often a Shuffle would, with the same memory
	Ahead   int     // batches whose chunks there is memory to decode in advance
}

// String says the plan in a sentence.
func (p ChunkPlan) String() string {
	if p.Lanes == 0 {
		return fmt.Sprintf("all chunks, %s, stay in memory: each is decoded once", units.Bytes(p.All))
	}
	return fmt.Sprintf("%s, %s of decoded chunks: each chunk is decoded %.2f times an epoch, and %.1f times by "+
		"Shuffle", units.Counted(int64(p.Lanes), "lane"), units.Bytes(p.Bytes), p.Decodes, p.Shuffle)
}

// chunkPlanner searches for a ChunkPlan: few decodes of each chunk, within the memory, with enough
// lanes for varied batches. More lanes make batches more varied and need more memory; larger groups
// of cells decode less and also need more memory.
type chunkPlanner struct {
	c     *Chunks
	o     ChunkOptions
	each  int // records of a process in a batch
	cells int // that have records
	n     int
	plan  ChunkPlan
}

const (
	// 1/reserve of the memory is for chunks that are decoded in advance, and for chunks that no record needs any
	// more.
	reserve = 8

	dearRun   = 16 // chunks at the ends of runs are at most 1 in this number
	dearLanes = 8  // and those at the ends of lanes
	fewLanes  = 16 // fewer are not accepted for larger groups
	tooOften  = 2  // decodes a chunk, for which fewer lanes are accepted
	mostAhead = 32 // batches
	leastMix  = 4  // lanes, however often their ends are decoded
)

// newPlanner returns the planner of a ChunkPlan in which every group is one cell.
func newPlanner(c *Chunks, o ChunkOptions) *chunkPlanner {
	p := &chunkPlanner{c: c, o: o, each: o.Batch / o.Ranks, n: c.Len(), cells: c.occupied()}
	p.plan.Memory, p.plan.Batch, p.plan.Groups = o.Memory, p.each, make([]int, len(c.Axes))
	for a := range c.Axes {
		p.plan.Groups[a] = 1
	}
	p.plan.All = p.all()
	p.plan.Axis = p.widest()
	p.plan.Run = p.run()
	return p
}

func newChunkPlan(c *Chunks, o ChunkOptions) (ChunkPlan, error) {
	p := newPlanner(c, o)
	p.plan.Shuffle = p.shuffled()
	if p.plan.All <= o.Memory-o.Memory/reserve && o.Lanes == 0 {
		p.plan.Bytes, p.plan.Decodes, p.plan.Axis, p.plan.Run = p.plan.All, 1, 0, 0
		p.plan.Ahead = p.ahead()
		return p.plan, nil
	}
	p.group()
	return p.plan, p.settle()
}

// occupied returns how many cells have at least one record.
func (c *Chunks) occupied() int {
	if c.Cells != nil {
		seen := make(map[int]bool)
		for _, cell := range c.Cells {
			seen[cell] = true
		}
		return len(seen)
	}
	n := 1
	for _, a := range c.Axes {
		some := 0
		for k := range a.cells() {
			if a.Cuts[k+1] > a.Cuts[k] {
				some++
			}
		}
		n *= some
	}
	return n
}

// along returns how many chunks of a field the records need along an axis.
func (p *chunkPlanner) along(f *ChunkField, axis int) int {
	if f.Counts[axis] == 0 {
		return 1
	}
	return span(f.Needs[axis]).count(f.Counts[axis])
}

// all returns the bytes of all chunks that records need, decoded.
func (p *chunkPlanner) all() (bytes int64) {
	return p.sum(func(f *ChunkField, axis int) float64 { return float64(p.along(f, axis)) })
}

// sum adds up, over all fields, the bytes of a chunk times a factor for each axis. Float64 cannot
// overflow here, and the result is limited.
func (p *chunkPlanner) sum(of func(f *ChunkField, axis int) float64) int64 {
	all := 0.0
	for i := range p.c.Fields {
		f := &p.c.Fields[i]
		n := float64(f.Bytes)
		for a := range p.c.Axes {
			n *= of(f, a)
		}
		all += n
	}
	return int64(min(all, math.MaxInt64/2))
}

// counts returns how many chunks of a field the groups of cells need along an axis: the sum over
// all groups, and the most of one group.
func (p *chunkPlanner) counts(f *ChunkField, axis, group int) (sum, most int) {
	if f.Counts[axis] == 0 { // all groups need the same chunks, so that these stay
		return 1, 1
	}
	needs := f.Needs[axis]
	for k := 0; k < len(needs); k += group {
		n := span(needs[k:min(k+group, len(needs))]).count(f.Counts[axis])
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// halo returns how many times as many chunks are decoded along an axis if each group of cells
// decodes all the chunks that it needs. Windows that reach into the next chunk make it larger than
// 1.
func (p *chunkPlanner) halo(axis, group int) float64 {
	sum := p.sum(func(f *ChunkField, a int) float64 {
		if a != axis {
			return float64(p.along(f, a))
		}
		n, _ := p.counts(f, a, group)
		return float64(n)
	})
	return float64(sum) / float64(max(1, p.plan.All))
}

// widest returns the axis along which windows cross the most chunks. Lanes walk along this axis,
// where neighboring cells share most.
func (p *chunkPlanner) widest() (axis int) {
	most := 0.0
	for a := range p.c.Axes {
		if h := p.halo(a, 1); h > most {
			axis, most = a, h
		}
	}
	return axis
}

// run returns how many cells a lane walks in their order: few, for randomness, but enough that
// chunks at the ends of runs, which two lanes decode, are rare.
func (p *chunkPlanner) run() int {
	cells := p.c.Axes[p.plan.Axis].cells()
	if p.o.Run > 0 {
		return min(p.o.Run, cells)
	}
	run := 1
	for run < cells && p.halo(p.plan.Axis, run) > 1+1.0/dearRun {
		run = min(2*run, cells)
	}
	return run
}

// lane returns the bytes that a lane holds at a time, and the bytes that it decodes when it moves
// to its next cell.
func (p *chunkPlanner) lane() (bytes, step int64) {
	bytes = p.sum(func(f *ChunkField, a int) float64 {
		_, most := p.counts(f, a, p.plan.Groups[a])
		return float64(most)
	})
	if p.plan.Run == 1 {
		return bytes, bytes
	}
	return bytes, p.sum(func(f *ChunkField, a int) float64 {
		if a == p.plan.Axis {
			return float64(p.along(f, a)) / float64(p.c.Axes[a].cells())
		}
		_, most := p.counts(f, a, p.plan.Groups[a])
		return float64(most)
	})
}

// need returns the bytes that every lane needs, and the bytes that all lanes share: the next
// chunks of a lane while its last chunks are still held.
func (p *chunkPlanner) need() (each, besides float64) {
	bytes, step := p.lane()
	groups := 1
	for _, g := range p.plan.Groups {
		groups *= g
	}
	records := max(1, float64(p.n)/float64(p.cells)*float64(groups)) // of a cell
	return float64(bytes) + float64(step)/records, float64(step)
}

// fit returns how many lanes the memory holds.
func (p *chunkPlanner) fit() int {
	each, besides := p.need()
	return int((float64(p.o.Memory-p.o.Memory/reserve) - besides) / each)
}

// memory returns the memory that a number of lanes needs, in words for an error.
func (p *chunkPlanner) memory(lanes int) string {
	each, besides := p.need()
	return units.Bytes(int64((float64(lanes)*each+besides)*reserve/(reserve-1)) + 1)
}

// enough returns the least number of lanes that keeps batches varied. It is smaller where chunks
// would otherwise be decoded very often.
func (p *chunkPlanner) enough() int {
	if p.o.Lanes > 0 {
		return p.o.Lanes
	}
	often := 1.0
	for a := range p.c.Axes {
		often *= p.halo(a, p.groupOf(a))
	}
	if often > tooOften {
		return min(p.each, leastMix)
	}
	return min(p.each, fewLanes)
}

// group makes groups of cells larger along the axes whose chunks would be decoded most often, as
// long as enough lanes fit into the memory.
func (p *chunkPlanner) group() {
	done := make([]bool, len(p.c.Axes))
	done[p.plan.Axis] = true
	for {
		worst, at := 1+1.0/dearRun, -1
		for a := range p.c.Axes {
			if h := p.halo(a, p.plan.Groups[a]); !done[a] && h > worst {
				worst, at = h, a
			}
		}
		if at < 0 {
			return
		}
		least, before := p.enough(), p.plan.Groups[at]
		p.plan.Groups[at] = min(before+max(1, before/2), p.c.Axes[at].cells())
		if p.fit() < least || p.plan.Groups[at] == before {
			p.plan.Groups[at], done[at] = before, true
		}
	}
}

// settle sets the number of lanes and the cost of the plan.
func (p *chunkPlanner) settle() error {
	most, least := p.fit(), max(1, p.o.Lanes)
	if most < least {
		return fmt.Errorf("%s of memory do not hold the chunks of %s; give %s, smaller records, or store the array in "+
			"smaller chunks", units.Bytes(p.o.Memory), units.Counted(int64(least), "lane"), p.memory(least))
	}
	bytes, _ := p.lane()
	decoded := p.sum(func(f *ChunkField, a int) float64 {
		n, _ := p.counts(f, a, p.groupOf(a))
		return float64(n)
	})
	lanes := p.o.Lanes
	if lanes == 0 {
		cheap := int(decoded / (bytes * dearLanes) / int64(p.o.Ranks))
		lanes = max(1, min(most, 2*p.each, max(cheap, leastMix)))
	}
	lanes = min(lanes, max(1, p.n/p.o.Ranks))
	p.plan.Lanes, p.plan.Bytes = lanes, int64(lanes)*bytes
	p.plan.Decodes = float64(decoded+int64(lanes*p.o.Ranks)*bytes) / float64(p.plan.All)
	p.plan.Ahead = p.ahead()
	return nil
}

// ahead returns for how many batches the reserve holds chunks decoded in advance.
func (p *chunkPlanner) ahead() int {
	batch := float64(p.plan.All) * p.plan.Decodes * float64(p.each) / float64(p.n) // that a process decodes for one
	return int(min(mostAhead, max(1, float64(p.o.Memory/reserve/2)/max(1, batch))))
}

// groupOf returns how many cells of an axis a lane serves with one decoding of their chunks.
func (p *chunkPlanner) groupOf(axis int) int {
	if axis == p.plan.Axis {
		return p.plan.Run
	}
	return p.plan.Groups[axis]
}

// shuffled estimates how often Shuffle decodes a chunk: each record decodes the chunks that it
// needs, except the part that the memory happens to hold.
func (p *chunkPlanner) shuffled() float64 {
	touched := p.sum(func(f *ChunkField, a int) float64 {
		sum, _ := p.counts(f, a, 1)
		if f.Counts[a] == 0 {
			return 1
		}
		return float64(sum) / float64(p.c.Axes[a].cells())
	})
	missed := max(0, 1-float64(p.o.Memory)/float64(max(1, p.plan.All)))
	return max(1, float64(p.n)*float64(touched)/float64(max(1, p.plan.All))*missed)
}
