package sampler_test

import (
	"container/list"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader/sampler"
)

// windowAxis is an axis of an array in chunks, and of windows on it.
type windowAxis struct{ n, chunk, size, stride int }

func (a windowAxis) origins() int { return (a.n-a.size)/a.stride + 1 }

// layout returns windows on some axes as Chunks of one field, in the plainest way.
func layout(axes []windowAxis, bytes int64) sampler.Chunks {
	c := sampler.Chunks{Fields: []sampler.ChunkField{{Name: "x", Bytes: bytes}}}
	f := &c.Fields[0]
	for _, a := range axes {
		cuts, needs := []int{0}, []sampler.ChunkRange{}
		for i := range a.origins() {
			first, last := i*a.stride/a.chunk, (i*a.stride+a.size-1)/a.chunk
			if len(needs) > 0 && first == (cuts[len(cuts)-1]-1)*a.stride/a.chunk {
				needs[len(needs)-1].Last = last
				cuts[len(cuts)-1]++
				continue
			}
			cuts, needs = append(cuts, i+1), append(needs, sampler.ChunkRange{First: first, Last: last})
		}
		c.Axes = append(c.Axes, sampler.ChunkAxis{Cuts: cuts})
		f.Counts, f.Needs = append(f.Counts, (a.n+a.chunk-1)/a.chunk), append(f.Needs, needs)
	}
	return c
}

// cellOf returns the cell of a record on each axis.
func cellOf(c *sampler.Chunks, record int) []int {
	cell := make([]int, len(c.Axes))
	for a := len(c.Axes) - 1; a >= 0; a-- {
		cuts := c.Axes[a].Cuts
		n := cuts[len(cuts)-1]
		cell[a] = max(0, func() int { k, _ := slices.BinarySearch(cuts, record%n+1); return k - 1 }())
		record /= n
	}
	return cell
}

// decodes reads an epoch of a rank as a cache does that keeps what cells need which were used last, and returns how many
// chunks it decodes, and how many there were.
func decodes(c *sampler.Chunks, axes []windowAxis, o *sampler.ChunkShuffle, records []int, batch, memory int) (decoded, needed int) {
	type entry struct{ chunk string }
	order, at := list.New(), map[string]*list.Element{}
	all := map[string]bool{}
	visit := func(ranges []sampler.ChunkRange, f func(chunk string)) {
		var walk func(a int, name string)
		walk = func(a int, name string) {
			if a == len(ranges) {
				f(name)
				return
			}
			for k := ranges[a].First; k <= ranges[a].Last; k++ {
				walk(a+1, fmt.Sprint(name, ",", k))
			}
		}
		walk(0, "")
	}
	for len(records) > 0 {
		n := min(batch, len(records))
		for _, r := range records[:n] {
			needs, _ := o.Needs("x", cellOf(c, r), nil)
			visit(needs, func(chunk string) {
				if e := at[chunk]; e != nil {
					order.MoveToFront(e)
				}
			})
		}
		for _, r := range records[:n] {
			ranges := make([]sampler.ChunkRange, len(axes))
			for a, rest := len(axes)-1, r; a >= 0; a-- {
				i := rest % axes[a].origins() * axes[a].stride
				rest /= axes[a].origins()
				ranges[a] = sampler.ChunkRange{First: i / axes[a].chunk, Last: (i + axes[a].size - 1) / axes[a].chunk}
			}
			visit(ranges, func(chunk string) {
				all[chunk] = true
				if at[chunk] == nil {
					decoded++
					at[chunk] = order.PushFront(entry{chunk})
				}
			})
			for order.Len() > memory {
				e := order.Back()
				delete(at, e.Value.(entry).chunk)
				order.Remove(e)
			}
		}
		records = records[n:]
	}
	return decoded, len(all)
}

func randomAxes(r *rand.Rand) (axes []windowAxis) {
	for range 1 + r.IntN(3) {
		a := windowAxis{n: 1 + r.IntN(60), chunk: 1 + r.IntN(20), stride: 1 + r.IntN(4)}
		a.size = 1 + r.IntN(min(a.n, 12))
		axes = append(axes, a)
	}
	return axes
}

// TestChunkShuffleIsAPermutation has every record once, in pieces as at once, on grids and of lists of records.
func TestChunkShuffleIsAPermutation(t *testing.T) {
	planned := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 33))
		axes := randomAxes(r)
		c := layout(axes, 1<<10)
		n := c.Len()
		if r.IntN(3) == 0 { // some of the records
			of := rand.New(rand.NewPCG(seed, 1)).Perm(n)[:1+r.IntN(n)]
			for _, record := range of {
				number := 0
				for a, k := range cellOf(&c, record) {
					number = number*(len(c.Axes[a].Cuts)-1) + k
				}
				c.Cells = append(c.Cells, number)
			}
			n = len(of)
		}
		ranks := min(n, 1+r.IntN(3))
		o, err := sampler.NewChunkShuffle(c, sampler.ChunkOptions{Memory: 1 << (12 + r.IntN(4)), Batch: ranks * (1 + r.IntN(20)), Ranks: ranks, Lanes: r.IntN(4), Run: r.IntN(3) * r.IntN(6)})
		if err != nil {
			if !strings.Contains(err.Error(), "of memory do not hold the chunks of") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		if o.Plan().Lanes > 0 {
			planned++
		}
		first, second := fillAll(t, o, n, seed, 0), fillAll(t, o, n, seed, 1)
		checkPermutation(t, fmt.Sprintf("seed %d, %+v", seed, axes), first, upTo(n))
		checkPermutation(t, fmt.Sprintf("seed %d, %+v, epoch 1", seed, axes), second, upTo(n))
		if n > 100 && (slices.Equal(first, second) || slices.Equal(first, fillAll(t, o, n, seed+1, 0))) {
			t.Errorf("seed %d: the same order in two epochs, or with two seeds", seed)
		}
	}
	if planned < 100 {
		t.Errorf("%d of 300 cases have lanes: this test sees too little", planned)
	}
}

// TestChunkShuffleDecodesOnce counts what a cache decodes that has the planned memory.
func TestChunkShuffleDecodesOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		axes   []windowAxis
		memory int64
		ranks  int
		most   float64 // decodes a chunk
	}{
		{"one record a row", []windowAxis{{4096, 16, 1, 1}}, 40, 1, 1.1},
		{"aligned tiles", []windowAxis{{256, 16, 8, 8}, {256, 16, 8, 8}}, 24, 1, 1.15},
		{"time series", []windowAxis{{10_000, 25, 24, 1}}, 64, 1, 1.2},
		{"time series, two ranks", []windowAxis{{10_000, 25, 24, 1}}, 40, 2, 1.2},
		{"a step a chunk", []windowAxis{{2000, 1, 12, 1}, {16, 16, 8, 8}}, 200, 1, 1.2},
		{"chunks of unequal counts", []windowAxis{{1003, 10, 7, 3}, {77, 10, 1, 1}}, 64, 1, 1.25},
		{"a volume", []windowAxis{{64, 4, 6, 4}, {64, 4, 6, 4}, {64, 4, 6, 4}}, 1400, 1, 1.7},
	} {
		l := layout(c.axes, 1)
		const batch = 16
		o, err := sampler.NewChunkShuffle(l, sampler.ChunkOptions{Memory: c.memory, Batch: batch * c.ranks, Ranks: c.ranks})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		plan := o.Plan()
		all := fillAll(t, o, l.Len(), 5, 3)
		decoded, needed := 0, 0
		for rank := range c.ranks {
			var own []int
			for i := rank * batch; i+batch <= len(all); i += batch * c.ranks {
				own = append(own, all[i:i+batch]...)
			}
			d, _ := decodes(&l, c.axes, o, own, batch, int(c.memory))
			decoded += d
		}
		_, needed = decodes(&l, c.axes, o, all, batch, int(c.memory))
		got := float64(decoded) / float64(needed)
		t.Logf("%-25s %v: decoded %.3f; randomness of a batch %.2f, of 16 %.2f", c.name, plan, got,
			sampler.Randomness(o, l.Len(), batch*c.ranks, 1, 5), sampler.Randomness(o, l.Len(), batch*c.ranks, 16, 5))
		if got > c.most || got > plan.Decodes+0.05 {
			t.Errorf("%s: %.3f decodes a chunk, the plan has %.3f, and at most %.2f were expected", c.name, got, plan.Decodes, c.most)
		}
		if plan.Bytes > c.memory {
			t.Errorf("%s: %d chunks at a time, of %d", c.name, plan.Bytes, c.memory)
		}
	}
}
