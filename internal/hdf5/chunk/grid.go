package chunk

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// maxRank is the largest number of axes in HDF5.
const maxRank = 32

// grid says how records, which are steps along the first axis, are divided into chunks. A row is all chunks that share
// their place on the first axis; the columns of all rows are alike.
type grid struct {
	dims    []int64 // elements of the dataset, records first
	chunk   []int64 // elements of a chunk
	elem    int64   // bytes of an element
	record  int     // bytes of a record
	deep    int64   // records of a row
	layer   int     // bytes that a chunk has for each record
	size    int     // bytes of a chunk
	rows    int64
	columns int64
	whole   bool // a chunk consists of deep whole records
}

// newGrid computes the sizes of a grid of chunks. All of them come from the file, so every product is checked against
// overflow before it is used as the length of a slice.
func newGrid(dims, chunk []int64, elem int64) (g grid, err error) {
	g = grid{dims: dims, chunk: chunk, elem: elem, deep: chunk[0], columns: 1, whole: true}
	record, layer := elem, elem
	for i := 1; i < len(dims); i++ {
		n := chunksOn(dims[i], chunk[i])
		if !fits(record, dims[i]) || !fits(layer, chunk[i]) || !fits(g.columns, n) {
			return g, tooLarge(dims, chunk)
		}
		record, layer, g.columns = record*dims[i], layer*chunk[i], g.columns*n
		g.whole = g.whole && chunk[i] == dims[i]
	}
	g.rows = chunksOn(dims[0], g.deep)
	if !fits(g.rows, g.columns) || !fits(layer, g.deep) || int64(int(record)) != record ||
		int64(int(layer*g.deep)) != layer*g.deep {
		return g, tooLarge(dims, chunk)
	}
	g.record, g.layer, g.size = int(record), int(layer), int(layer*g.deep)
	return g, nil
}

// chunksOn returns how many chunks of n elements an axis has.
func chunksOn(length, n int64) int64 { return length/n + min(length%n, 1) }

func fits(a, b int64) bool { return b == 0 || a <= math.MaxInt64/b }

func tooLarge(dims, chunk []int64) error {
	return fmt.Errorf("shape %v in chunks of %v has too many of them: %w", dims, chunk, meta.ErrUnsupported)
}

// place returns the number of the chunk with these first elements. Chunks are numbered row by row.
func (g *grid) place(coord []int64) int64 {
	n := int64(0)
	for i, x := range coord {
		n = n*chunksOn(g.dims[i], g.chunk[i]) + x/g.chunk[i]
	}
	return n
}

// coord returns the coordinates of the first element of the chunk with that number.
func (g *grid) coord(place int64) []int64 {
	c := make([]int64, len(g.dims))
	for i := len(c) - 1; i >= 0; i-- {
		n := chunksOn(g.dims[i], g.chunk[i])
		c[i] = place % n * g.chunk[i]
		place /= n
	}
	return c
}

// piece is the part of a record that the chunks of one column have: runs of bytes, one for each step along the outer
// axes.
type piece struct {
	at   int // place of the first byte in the record
	run  int // bytes of a run
	axes int // outer axes
	axis [maxRank]stride
}

// stride is one outer axis of a piece.
type stride struct {
	n        int64 // steps
	src, dst int   // bytes of a step in the chunk and in the record
}

// piece computes the piece of a column. Inner axes that a chunk has completely are joined into one run, so that each
// copy is as long as possible.
func (g *grid) piece(p *piece, column int64) {
	p.at, p.run, p.axes = 0, int(g.elem), 0
	src, dst := int(g.elem), int(g.elem) // bytes of a step along axis i
	joined := true                       // everything inside of axis i is one run
	for i := len(g.dims) - 1; i > 0; i-- {
		n := chunksOn(g.dims[i], g.chunk[i])
		first := column % n * g.chunk[i]
		column /= n
		count := min(g.chunk[i], g.dims[i]-first)
		p.at += int(first) * dst
		if joined {
			p.run *= int(count)
		} else {
			p.axis[p.axes] = stride{count, src, dst}
			p.axes++
		}
		joined = joined && g.chunk[i] == g.dims[i]
		src, dst = src*int(g.chunk[i]), dst*int(g.dims[i])
	}
}

// each calls f with the place of every run in the record and in the chunk's layer.
func (p *piece) each(f func(dst, src int)) {
	var step [maxRank]int64
	dst, src := p.at, 0
	for {
		f(dst, src)
		i := 0
		for ; i < p.axes; i++ {
			a := &p.axis[i]
			step[i]++
			dst, src = dst+a.dst, src+a.src
			if step[i] < a.n {
				break
			}
			dst, src = dst-int(a.n)*a.dst, src-int(a.n)*a.src
			step[i] = 0
		}
		if i == p.axes {
			return
		}
	}
}
