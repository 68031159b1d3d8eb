package combine

import (
	"fmt"
	"slices"
)

// plan assigns pieces to rows: first fit, in the order of the records, into a bounded number of
// open rows. A row is closed when it is full; if a piece fits into no row, the fullest one is
// closed. Rows are numbered as they are closed, so that rows of one dataset follow each other. The
// bound keeps records that are close in the order close in the rows.
type plan struct {
	pack   Pack
	pieces []Piece
	ends   []int // pieces of the rows up to each
	bounds []int // rows up to the end of each dataset, see Pack.Sizes
	used   int   // elements of all pieces
	long   int   // records that do not fit into a row
	open   []openRow
	spare  [][]Piece
}

type openRow struct {
	left   int // elements
	pieces []Piece
}

// newPlan packs records of the given lengths, one dataset after the other.
func newPlan(k Pack, lengths []int) (*plan, error) {
	p := &plan{pack: k}
	seq := k.Sampler.Epoch(len(lengths), k.Seed, k.Epoch)
	datasets := cumulative(k.Sizes)
	later := make([][]uint32, max(0, len(k.Sizes)-1)) // the records of all datasets but the first, in their order
	var some [256]int
	for pos := 0; pos < seq.Len(); pos += len(some) {
		indices := some[:min(len(some), seq.Len()-pos)]
		seq.Fill(pos, indices)
		if i := slices.IndexFunc(indices, func(r int) bool { return r < 0 || r >= len(lengths) }); i >= 0 {
			return nil, fmt.Errorf("the Sampler puts record %d at position %d, but the Source has %d records", indices[i], pos+i,
				len(lengths))
		}
		for _, r := range indices {
			if i, _ := slices.BinarySearch(datasets, r+1); i > 0 {
				later[i-1] = append(later[i-1], uint32(r))
			} else {
				p.record(r, lengths[r])
			}
		}
	}
	p.shutAll()
	for i := range later {
		for _, r := range later[i] {
			p.record(int(r), lengths[r])
		}
		p.shutAll()
		later[i] = nil
	}
	if p.long > 0 && k.Overflow == OverflowFail {
		return nil, fmt.Errorf("%d records have more than Length %d elements; let overflow be \"truncate\" or "+
			"\"split\" (in Go OverflowTruncate or OverflowSplit), or raise the length", p.long, k.Length)
	}
	p.open, p.spare = nil, nil
	return p, nil
}

// cumulative returns the running sums of list.
func cumulative(list []int) []int {
	sums := make([]int, len(list))
	total := 0
	for i, n := range list {
		total += n
		sums[i] = total
	}
	return sums
}

// shutAll closes all open rows at the end of a dataset: a row has records of one dataset only.
func (p *plan) shutAll() {
	for len(p.open) > 0 {
		p.shut(0)
	}
	p.bounds = append(p.bounds, len(p.ends))
}

// record packs a record of n elements. An empty record is in no row.
func (p *plan) record(r, n int) {
	length := p.pack.Length
	if n > length {
		p.long++
	}
	for from := 0; from < n; from += length {
		p.add(Piece{uint32(r), uint32(from), uint32(min(length, n-from))})
		if p.pack.Overflow != OverflowSplit {
			return
		}
	}
}

// add puts a piece into the first row that has room for it.
func (p *plan) add(piece Piece) {
	n := int(piece.N)
	i := slices.IndexFunc(p.open, func(row openRow) bool { return row.left >= n })
	if i < 0 {
		if len(p.open) == p.pack.MaxOpenRows {
			p.shut(p.fullest())
		}
		i = len(p.open)
		p.open = append(p.open, openRow{p.pack.Length, p.room()})
	}
	row := &p.open[i]
	row.left -= n
	row.pieces = append(row.pieces, piece)
	p.used += n
	if row.left == 0 {
		p.shut(i)
	}
}

// fullest returns the first open row with the least room: it wastes least when it is closed.
func (p *plan) fullest() int {
	best := 0
	for i := range p.open {
		if p.open[i].left < p.open[best].left {
			best = i
		}
	}
	return best
}

// shut closes an open row and gives it the next number.
func (p *plan) shut(i int) {
	p.pieces = append(p.pieces, p.open[i].pieces...)
	p.ends = append(p.ends, len(p.pieces))
	p.spare = append(p.spare, p.open[i].pieces[:0])
	p.open = slices.Delete(p.open, i, i+1)
}

// room returns memory for the pieces of a row, of a closed row if there is any.
func (p *plan) room() []Piece {
	if len(p.spare) == 0 {
		return nil
	}
	last := len(p.spare) - 1
	room := p.spare[last]
	p.spare = p.spare[:last]
	return room
}

// row returns the pieces of row i.
func (p *plan) row(i int) []Piece {
	first := 0
	if i > 0 {
		first = p.ends[i-1]
	}
	return p.pieces[first:p.ends[i]]
}
