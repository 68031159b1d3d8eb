package combine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/penstock/penstock/loader/sampler"
)

// chunkedArray is a chunked array that windows are cut from. Several fields of the records may come
// from one array, whose chunks are then decoded once for all of them.
type chunkedArray struct {
	f     *windowed // one of those that are cut from it
	grid  grid
	axes  []int // of the windows, by axis of the array; -1 stays whole
	least []int // by axis of the windows: offsets of the first and last element of any field from the origin
	most  []int
}

// chunkedAxis divides an axis of windows into cells: a cell has the windows that begin in one
// chunk.
type chunkedAxis struct {
	chunk int // elements
	base  int // the chunk of cell 0
	cells int
}

// chunkLayout knows in which chunks each window lies.
type chunkLayout struct {
	origins *origins
	arrays  []chunkedArray
	axes    []chunkedAxis
}

// newChunkLayout returns the layout of the chunks of those fields for which has returns true.
func newChunkLayout(c *cutter, has func(f *windowed) bool) (*chunkLayout, error) {
	l := &chunkLayout{origins: c.origins}
	for i := range c.fields {
		if has(&c.fields[i]) {
			l.add(&c.fields[i], len(c.axes))
		}
	}
	if len(l.arrays) == 0 {
		return nil, errors.New("no field of the windows is stored in chunks that have to be decoded; windows of memory and " +
			"of mapped files are read as fast in the order of Shuffle")
	}
	for a := range c.axes {
		l.axes = append(l.axes, l.axis(a))
	}
	return l, nil
}

// add adds the array that a field is cut from, or widens it if another field is cut from it
// already.
func (l *chunkLayout) add(f *windowed, axes int) {
	a := l.array(f)
	if a == nil {
		a := chunkedArray{f: f, grid: newGrid(f), least: make([]int, axes), most: make([]int, axes)}
		if !a.grid.chunks {
			return
		}
		for _, c := range f.cuts {
			a.axes = append(a.axes, c.axis)
			if c.axis >= 0 {
				a.least[c.axis], a.most[c.axis] = c.lead, c.lead+c.span()
			}
		}
		l.arrays = append(l.arrays, a)
		return
	}
	for _, c := range f.cuts {
		if c.axis >= 0 {
			a.least[c.axis] = min(a.least[c.axis], c.lead)
			a.most[c.axis] = max(a.most[c.axis], c.lead+c.span())
		}
	}
}

// array returns the array that a field is cut from, or nil if the array is not chunked.
func (l *chunkLayout) array(f *windowed) *chunkedArray {
	for i := range l.arrays {
		if a := &l.arrays[i]; a.f.part == f.part && a.f.in.Name == f.in.Name {
			return a
		}
	}
	return nil
}

// of returns the array's axis for an axis of windows, or -1.
func (a *chunkedArray) of(axis int) int { return slices.Index(a.axes, axis) }

// axis divides an axis by the chunks of the largest array, whose decoding costs the most.
func (l *chunkLayout) axis(axis int) chunkedAxis {
	x, largest := &l.origins.axes[axis], 0
	c := chunkedAxis{chunk: x.n}
	for i := range l.arrays {
		a := &l.arrays[i]
		bytes := a.grid.size
		for _, n := range a.grid.counts {
			bytes *= n
		}
		if d := a.of(axis); d >= 0 && bytes > largest {
			largest, c.chunk = bytes, a.grid.shape[d]
		}
	}
	first, last := 0, x.n-1
	if l.origins.table == nil {
		first, last = l.origins.position(axis, 0), l.origins.position(axis, x.count-1)
	}
	c.base = floorDiv(first+x.least, c.chunk)
	c.cells = floorDiv(last+x.least, c.chunk) - c.base + 1
	return c
}

// position returns origin i of an axis of a grid.
func (o *origins) position(axis, i int) int {
	a := &o.axes[axis]
	if axis != o.runAxis {
		return a.first + i*a.stride
	}
	r := sort.SearchInts(o.ends, i+1)
	if r > 0 {
		i -= o.ends[r-1]
	}
	return o.firsts[r] + i*a.stride
}

// cell returns the cell of an origin on an axis.
func (l *chunkLayout) cell(axis, origin int) int {
	c := &l.axes[axis]
	return floorDiv(origin+l.origins.axes[axis].least, c.chunk) - c.base
}

// chunks returns the layout in the form that a Sampler plans by, for all windows or for the listed
// ones.
func (l *chunkLayout) chunks(records []int) (sampler.Chunks, error) {
	c := sampler.Chunks{}
	for i := range l.arrays {
		a := &l.arrays[i]
		f := sampler.ChunkField{Name: a.f.in.Name, Bytes: int64(a.grid.size), Counts: make([]int, len(l.axes)),
			Needs: make([][]sampler.ChunkRange, len(l.axes))}
		for d, axis := range a.axes {
			if axis < 0 {
				f.Bytes *= int64(a.grid.counts[d])
			} else {
				f.Counts[axis] = a.grid.counts[d]
			}
		}
		c.Fields = append(c.Fields, f)
	}
	for axis := range l.axes {
		cuts := l.cuts(axis)
		c.Axes = append(c.Axes, sampler.ChunkAxis{Name: l.origins.axes[axis].name, Cuts: cuts})
		for i := range l.arrays {
			if d := l.arrays[i].of(axis); d >= 0 {
				for k := range l.axes[axis].cells {
					c.Fields[i].Needs[axis] = append(c.Fields[i].Needs[axis], l.needs(&l.arrays[i], d, k, cuts))
				}
			}
		}
	}
	if records == nil && l.origins.table == nil {
		return c, nil
	}
	n := len(records)
	if records == nil {
		n = l.origins.n
	}
	c.Cells = make([]int, n)
	var p place
	for i := range c.Cells {
		record := i
		if records != nil {
			record = records[i]
		}
		if record < 0 || record >= l.origins.n {
			return c, fmt.Errorf("record %d of %d does not exist", record, l.origins.n)
		}
		l.origins.of(record, &p)
		for axis := range l.axes {
			c.Cells[i] = c.Cells[i]*l.axes[axis].cells + l.cell(axis, p.at[axis])
		}
	}
	return c, nil
}

// cuts returns where the cells of an axis begin among its origins. The origins of a table are in no
// order, so that its cells have no range of origins.
func (l *chunkLayout) cuts(axis int) []int {
	x, c := &l.origins.axes[axis], &l.axes[axis]
	cuts := make([]int, c.cells+1)
	for k := range c.cells {
		if l.origins.table != nil {
			cuts[k+1] = k + 1
			continue
		}
		end := (c.base+k+1)*c.chunk - x.least
		cuts[k+1] = cuts[k] + sort.Search(x.count-cuts[k], func(i int) bool {
			return l.origins.position(axis, cuts[k]+i) >= end
		})
	}
	return cuts
}

// needs returns the chunks along axis d of an array that the windows of a cell touch.
func (l *chunkLayout) needs(a *chunkedArray, d, cell int, cuts []int) sampler.ChunkRange {
	axis := a.axes[d]
	x, c := &l.origins.axes[axis], &l.axes[axis]
	first := (c.base+cell)*c.chunk - x.least
	last := first + c.chunk - 1
	if l.origins.table == nil && cuts[cell] < cuts[cell+1] {
		first, last = l.origins.position(axis, cuts[cell]), l.origins.position(axis, cuts[cell+1]-1)
	}
	first, last, n := first+a.least[axis], last+a.most[axis], a.f.cuts[d].n
	if x.pad == PadWrap {
		return sampler.ChunkRange{First: wrappedChunk(first, n, a.grid.shape[d], a.grid.counts[d]),
			Last: wrappedChunk(last, n, a.grid.shape[d], a.grid.counts[d])}
	}
	inside := func(i int) int { return min(max(i, 0), n-1) / a.grid.shape[d] }
	return sampler.ChunkRange{First: inside(first), Last: inside(last)}
}

// wrappedChunk returns the chunk of element i on a circle of n elements. Chunk numbers count on from turn to turn, so
// that a window across the seam still has an ascending range of chunks.
func wrappedChunk(i, n, chunk, chunks int) int {
	return floorDiv(i, n)*chunks + mod(i, n)/chunk
}

// chunkRetention keeps the chunks that an order needs in the cache, and decodes the next chunks
// in advance.
type chunkRetention struct {
	layout *chunkLayout
	order  *sampler.ChunkShuffle
	bytes  int64         // of the windows that chunks are decoded in advance for
	slots  chan struct{} // of the goroutines that decode in advance
	past   pastWindows
}

// pastWindows remembers the windows that were read most recently. Announcements may come after the
// read that they announce; their chunks must not be decoded again.
type pastWindows struct {
	mu   sync.Mutex
	ring [1 << 12]int
	next int
	seen map[int]int // how often a window is in the ring
}

// add notes a window.
func (p *pastWindows) add(record int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = make(map[int]int)
	}
	if at := p.next % len(p.ring); p.next >= len(p.ring) {
		old := p.ring[at]
		if p.seen[old]--; p.seen[old] == 0 {
			delete(p.seen, old)
		}
	}
	p.ring[p.next%len(p.ring)] = record
	p.seen[record]++
	p.next++
}

func (p *pastWindows) has(record int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[record] > 0
}

// newChunkRetention returns the retention for an order, or nil if none of its fields is chunked.
func newChunkRetention(c *cutter, order *sampler.ChunkShuffle) *chunkRetention {
	none := make([]int, len(c.axes))
	has := func(f *windowed) bool {
		_, ok := order.Needs(f.in.Name, none, nil)
		return ok
	}
	layout, err := newChunkLayout(c, has)
	if err != nil {
		return nil
	}
	k := &chunkRetention{layout: layout, order: order, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	plan := order.Plan()
	for i := range c.fields {
		if has(&c.fields[i]) {
			k.bytes += int64(plan.Ahead) * int64(plan.Batch) * int64(c.fields[i].out.RecordBytes())
		}
	}
	return k
}

// touch marks the cached chunks of the lanes of some windows as recently used, so that they are not
// evicted while their lane still has records there.
func (k *chunkRetention) touch(cache *chunkCache, f *windowed, records []int) {
	a := k.layout.array(f)
	if a == nil {
		return
	}
	var p place
	cell, seen := make([]int, len(k.layout.axes)), make(map[int]bool)
	var needs []sampler.ChunkRange
	var keys []chunkKey
	for _, record := range records {
		number := 0
		k.layout.origins.of(record, &p)
		for axis := range cell {
			cell[axis] = k.layout.cell(axis, p.at[axis])
			number = number*k.layout.axes[axis].cells + cell[axis]
		}
		if seen[number] {
			continue
		}
		seen[number] = true
		var ok bool
		if needs, ok = k.order.Needs(f.in.Name, cell, needs[:0]); !ok {
			return
		}
		keys = a.keys(needs, keys, 0, 0)
	}
	cache.touch(keys)
}

// ahead starts to decode the chunks of windows that will be read, unless they are cached. ahead
// returns when the decoding of every chunk has begun; the number of goroutines is limited by
// slots. Each goroutine holds a lease of the Source, because the loop may end before the
// decoding does.
func (k *chunkRetention) ahead(ctx context.Context, c *cutter, f *windowed, records []int) error {
	if len(records) == 0 {
		return nil
	}
	if _, ok := k.order.Needs(f.in.Name, make([]int, len(c.axes)), nil); !ok {
		return nil
	}
	s := c.borrow()
	defer c.scratch.Put(s)
	r := newBlockRead(&c.cache, f)
	for _, i := range records {
		c.origins.of(i, &s.place)
		for a := range f.cuts {
			c.span(f, a, s)
		}
		r.add(s.spans[:len(f.cuts)], i, nil)
	}
	if k.past.has(records[0]) {
		return nil
	}
	k.touch(&c.cache, f, records) // so that the windows which come first do not evict the chunks of these
	for _, n := range slices.Sorted(maps.Keys(r.wanted)) {
		if k.past.has(records[0]) { // the batch was read meanwhile, and nobody may need its chunks any more
			return nil
		}
		if c.cache.has(chunkKey{f.part, f.in.Name, n}) {
			continue
		}
		select {
		case k.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := f.part.Retain(); err != nil {
			<-k.slots
			return err
		}
		go func() {
			defer func() {
				f.part.Release()
				<-k.slots
			}()
			_ = r.guarded(ctx, n) // the read that follows reports what is wrong
		}()
	}
	return nil
}

// keys appends the cache keys of the chunks in ranges along the axes of windows.
func (a *chunkedArray) keys(needs []sampler.ChunkRange, keys []chunkKey, d, number int) []chunkKey {
	if d == len(a.axes) {
		return append(keys, chunkKey{a.f.part, a.f.in.Name, number})
	}
	r := sampler.ChunkRange{Last: a.grid.counts[d] - 1}
	if axis := a.axes[d]; axis >= 0 && needs[axis].Last-needs[axis].First < r.Last {
		r = needs[axis]
	}
	for i := r.First; i <= r.Last; i++ {
		keys = a.keys(needs, keys, d+1, number*a.grid.counts[d]+mod(i, a.grid.counts[d]))
	}
	return keys
}
