package sampler

import "fmt"

// Chunks says in which chunks of arrays the records of a Source lie, which [NewChunkShuffle] plans
// by. The records are the cells of a grid: each record has one origin on every axis.
// combine.Windows makes Chunks.
type Chunks struct {
	Axes   []ChunkAxis
	Fields []ChunkField

	// Cells are the cells of the records, unless the records are all cells of Axes in order. A cell is numbered in the
	// order of the axes, the last of which counts fastest.
	Cells []int

	// Parts are the chunks of several Sources, in place of the fields above: the records of each part follow the
	// records of the part before. Places are the numbers of the records, part by part, if the records do not
	// follow each other so.
	Parts  []Chunks
	Places []int
}

// ChunkAxis is an axis on which records have origins. Cell k has the origins [Cuts[k], Cuts[k+1]):
// the origins of the records that begin in one chunk.
type ChunkAxis struct {
	Name string
	Cuts []int
}

// ChunkField is an array that is stored in chunks.
type ChunkField struct {
	Name  string
	Bytes int64 // of a decoded chunk, and of all those along axes that stay whole

	// By axis of Chunks: how many chunks the array has along the axis, 0 if the array does not have the axis; and,
	// for each cell of the axis, the chunks that its records need.
	Counts []int
	Needs  [][]ChunkRange
}

// ChunkRange is chunks First to Last along an axis. On a circular axis First may be below 0, and
// Last beyond the last chunk.
type ChunkRange struct{ First, Last int }

// count returns how many different chunks a range has on an axis of that many chunks, and 1 for an
// axis that the field does not have.
func (r ChunkRange) count(along int) int {
	if along == 0 {
		return 1
	}
	return min(r.Last-r.First+1, along)
}

func (r ChunkRange) with(o ChunkRange) ChunkRange {
	return ChunkRange{min(r.First, o.First), max(r.Last, o.Last)}
}

// cells returns how many cells an axis has.
func (a *ChunkAxis) cells() int { return len(a.Cuts) - 1 }

// Len returns the number of records.
func (c *Chunks) Len() int {
	if c.Parts != nil {
		n := 0
		for i := range c.Parts {
			n += c.Parts[i].Len()
		}
		return n
	}
	if c.Cells != nil {
		return len(c.Cells)
	}
	n := 1
	for i := range c.Axes {
		n *= c.Axes[i].Cuts[c.Axes[i].cells()]
	}
	return n
}

// Shuffle returns how often an epoch of [Shuffle] decodes a chunk on average, if memory bytes of
// decoded chunks are kept.
func (c *Chunks) Shuffle(memory int64) float64 {
	if c.Parts != nil {
		decoded, all := 0.0, int64(0)
		for i := range c.Parts {
			if n := c.Parts[i].Len(); n > 0 {
				bytes, _ := c.Parts[i].memory(ChunkOptions{Batch: 1, Ranks: 1})
				decoded, all = decoded+float64(bytes)*c.Parts[i].Shuffle(memory), all+bytes
			}
		}
		return decoded / float64(max(1, all))
	}
	p := chunkPlanner{c: c, o: ChunkOptions{Memory: memory}, n: c.Len()}
	p.plan.All = p.all()
	return p.shuffled()
}

// check returns an error if c is not a valid layout. Chunks may come from a Source of the caller,
// and the planner divides by its numbers.
func (c *Chunks) check() error {
	if c.Parts != nil {
		for i := range c.Parts {
			if err := c.Parts[i].check(); err != nil {
				return fmt.Errorf("source %d: %w", i, err)
			}
			if p := c.Parts[i].Places; p != nil && len(p) != c.Parts[i].Len() {
				return fmt.Errorf("source %d has %d records in %d places", i, c.Parts[i].Len(), len(p))
			}
		}
		return nil
	}
	if len(c.Axes) == 0 || len(c.Fields) == 0 {
		return fmt.Errorf("%d axes and %d fields in chunks; there must be some", len(c.Axes), len(c.Fields))
	}
	all := 1
	for _, a := range c.Axes {
		if len(a.Cuts) < 2 || a.Cuts[0] != 0 {
			return fmt.Errorf("axis %q has %d cuts; there must be 2 at least, from 0 on", a.Name, len(a.Cuts))
		}
		for k := range a.cells() {
			if a.Cuts[k] > a.Cuts[k+1] {
				return fmt.Errorf("axis %q has cuts that descend", a.Name)
			}
		}
		all *= a.cells()
	}
	for _, f := range c.Fields {
		if len(f.Counts) != len(c.Axes) || len(f.Needs) != len(c.Axes) {
			return fmt.Errorf("field %q is not of %d axes", f.Name, len(c.Axes))
		}
		for a, needs := range f.Needs {
			if f.Counts[a] > 0 && len(needs) != c.Axes[a].cells() {
				return fmt.Errorf("field %q has chunks of %d cells on axis %q, which has %d", f.Name, len(needs),
					c.Axes[a].Name, c.Axes[a].cells())
			}
		}
	}
	for i, cell := range c.Cells {
		if cell < 0 || cell >= all {
			return fmt.Errorf("record %d is in cell %d of %d", i, cell, all)
		}
	}
	return nil
}

// merged returns an axis whose cells are groups of cells, and the chunks that each group needs of
// every field.
func (c *Chunks) merged(axis, group int) (ChunkAxis, [][]ChunkRange) {
	a := &c.Axes[axis]
	out := ChunkAxis{Name: a.Name}
	needs := make([][]ChunkRange, len(c.Fields))
	for k := 0; k < a.cells(); k += group {
		end := min(k+group, a.cells())
		out.Cuts = append(out.Cuts, a.Cuts[k])
		for f := range c.Fields {
			if c.Fields[f].Counts[axis] > 0 {
				needs[f] = append(needs[f], span(c.Fields[f].Needs[axis][k:end]))
			}
		}
	}
	out.Cuts = append(out.Cuts, a.Cuts[a.cells()])
	return out, needs
}

// span returns the smallest range that contains the ranges of some cells.
func span(needs []ChunkRange) ChunkRange {
	r := needs[0]
	for _, n := range needs[1:] {
		r = r.with(n)
	}
	return r
}
