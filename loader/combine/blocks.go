package combine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/tensor"
)

// grid divides a field that is not in memory into the pieces that one read returns: chunks of the
// Source or, if the Source has no chunks, records.
type grid struct {
	shape  []int // elements of a chunk, along each axis
	counts []int // chunks along each axis
	chunks bool  // of a loader.GridSource
	size   int   // bytes of a chunk
}

// newGrid returns the grid of a field. A record is a chunk of length 1 on the first axis and of
// full length on the others, so that both forms are copied by the same code.
func newGrid(f *windowed) grid {
	g := grid{size: f.in.DType.Size()}
	if g.chunks = f.chunked(); g.chunks {
		g.shape = f.part.can.Grid.ChunkShape(f.in.Name)
	} else {
		for _, c := range f.cuts {
			g.shape = append(g.shape, c.n)
		}
		g.shape[0] = 1
	}
	for a, c := range f.cuts {
		g.counts = append(g.counts, (c.n+g.shape[a]-1)/g.shape[a])
		g.size *= g.shape[a]
	}
	return g
}

// chunked reports whether the Source reads the field in chunks.
func (f *windowed) chunked() bool {
	return f.part.can.Grid != nil && f.part.can.Grid.ChunkShape(f.in.Name) != nil
}

// read fills dst with a chunk.
func (g *grid) read(ctx context.Context, f *windowed, number int, dst []byte) error {
	if !g.chunks {
		return f.part.Gather(ctx, f.in.Name, []int{number}, dst)
	}
	at := make([]int, len(g.counts))
	for a := len(at) - 1; a >= 0; a-- {
		at[a], number = number%g.counts[a], number/g.counts[a]
	}
	return f.part.can.Grid.ReadChunk(ctx, f.in.Name, at, dst)
}

// blockRead copies windows of a field out of chunks. All windows are added first, so that each
// chunk is decoded once for all windows that have a part of it.
type blockRead struct {
	cache   *chunkCache
	f       *windowed
	grid    grid
	windows []blockWindow
	wanted  map[int][]wantedPart // by chunk
}

// blockWindow is a window with its parts along each axis.
type blockWindow struct {
	record int
	dst    []byte
	parts  [][]part // by axis
	whole  int      // the axes from here on are whole in the window and in each chunk, and their bytes are copied at once
}

// part is the elements along one axis that a window and a chunk share: element ks[i] of the window
// is element is[i] of the chunk.
type part struct {
	chunk  int
	ks, is []int
	run    bool // both are consecutive
}

// wantedPart is the part of one window in one chunk: one part on each axis.
type wantedPart struct {
	window int
	parts  [tensor.MaxRank]uint32
}

func newBlockRead(cache *chunkCache, f *windowed) *blockRead {
	return &blockRead{cache: cache, f: f, grid: newGrid(f), wanted: make(map[int][]wantedPart)}
}

// add adds a window whose elements are listed by spans. Elements beyond the edge are filled in
// advance, since no chunk will provide them.
func (r *blockRead) add(spans []span, record int, dst []byte) {
	w := blockWindow{record: record, dst: dst, whole: len(spans)}
	for a := len(spans) - 1; a >= 0 && spans[a].isAll(r.f.cuts[a].n) && r.grid.shape[a] == r.f.cuts[a].n; a-- {
		w.whole = a
	}
	padded := false
	for a := range spans {
		if a >= w.whole && a > 0 {
			w.parts = append(w.parts, []part{{run: true}})
			continue
		}
		parts, beyond := divideSpan(&spans[a], r.grid.shape[a])
		w.parts, padded = append(w.parts, parts), padded || beyond
	}
	if padded {
		repeat(dst, r.f.fill)
	}
	r.windows = append(r.windows, w)
	r.want(wantedPart{window: len(r.windows) - 1}, 0, 0)
}

// divideSpan divides the elements of an axis among their chunks; beyond reports that some elements
// are fill.
func divideSpan(s *span, chunk int) (parts []part, beyond bool) {
	for k := range s.n {
		i := s.at(k)
		if i < 0 {
			beyond = true
			continue
		}
		c := i / chunk
		p := len(parts) - 1
		if p < 0 || parts[p].chunk != c {
			if p = slices.IndexFunc(parts, func(p part) bool { return p.chunk == c }); p < 0 {
				parts, p = append(parts, part{chunk: c, run: true}), len(parts)
			}
		}
		t := &parts[p]
		if n := len(t.ks); n > 0 {
			t.run = t.run && k == t.ks[n-1]+1 && i-c*chunk == t.is[n-1]+1
		}
		t.ks, t.is = append(t.ks, k), append(t.is, i-c*chunk)
	}
	return parts, beyond
}

// want enters every chunk that the last window needs: the product of its parts on all axes.
func (r *blockRead) want(p wantedPart, a, number int) {
	parts := r.windows[p.window].parts
	if a == len(parts) {
		r.wanted[number] = append(r.wanted[number], p)
		return
	}
	for i := range parts[a] {
		p.parts[a] = uint32(i)
		r.want(p, a+1, number*r.grid.counts[a]+parts[a][i].chunk)
	}
}

// run reads the chunks and copies the windows. Chunks are decoded by several goroutines, since
// decoding is what takes the time. Their parts of the windows do not overlap, so that no lock is
// needed. After an error no further goroutine starts, and run waits for all that did: they write
// to the caller's memory.
func (r *blockRead) run(ctx context.Context) error {
	numbers := slices.Sorted(maps.Keys(r.wanted))
	workers := min(runtime.GOMAXPROCS(0), len(numbers))
	if !r.grid.chunks || workers < 2 {
		for _, n := range numbers {
			if err := r.chunk(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, len(numbers))
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(numbers)); i = next.Add(1) - 1 {
				if errs[i] = r.guarded(ctx, numbers[i]); errs[i] != nil {
					next.Store(int64(len(numbers)))
				}
			}
		})
	}
	all.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// guarded is chunk for a goroutine of its own, where a panic would end the process.
func (r *blockRead) guarded(ctx context.Context, number int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.chunk(ctx, number)
}

// chunk copies one chunk's parts of all windows. The chunk may be read by another call, whose
// context is cancelled: then this call reads the chunk again.
func (r *blockRead) chunk(ctx context.Context, number int) error {
	wanted := r.wanted[number]
	key := chunkKey{r.f.part, r.f.in.Name, number}
	var e *chunkEntry
	for again := true; again; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		e, err = r.cache.get(key, r.grid.size, func(dst []byte) error { return r.grid.read(ctx, r.f, number, dst) })
		again = errors.Is(err, context.Canceled) && ctx.Err() == nil // the context of the first reader
		if err != nil && !again {
			return failed(err, r.windows[wanted[0].window].record)
		}
	}
	defer r.cache.release(e)
	for i := range wanted {
		w := &r.windows[wanted[i].window]
		if w.dst == nil { // it is read in advance
			continue
		}
		r.copy(&wanted[i], w, len(w.dst), r.grid.size, 0, w.dst, e.data)
	}
	return nil
}

// copy copies the axes from a on. to and from are the bytes of the axes from a on, in the window
// and in the chunk.
func (r *blockRead) copy(p *wantedPart, w *blockWindow, to, from, a int, dst, src []byte) {
	t := &w.parts[a][p.parts[a]]
	to, from = to/r.f.cuts[a].size, from/r.grid.shape[a]
	last := a == len(w.parts)-1 || a+1 >= w.whole
	if last && t.run {
		copy(dst[t.ks[0]*to:(t.ks[0]+len(t.ks))*to], src[t.is[0]*from:])
		return
	}
	for i, k := range t.ks {
		if last {
			copy(dst[k*to:(k+1)*to], src[t.is[i]*from:])
		} else {
			r.copy(p, w, to, from, a+1, dst[k*to:(k+1)*to], src[t.is[i]*from:(t.is[i]+1)*from])
		}
	}
}
