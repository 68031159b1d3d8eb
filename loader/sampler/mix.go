package sampler

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
)

// Mix draws from several sources that are concatenated to one, in a given proportion, however
// large each is. In every block of 4096 positions, each source has its share of them, rounded to
// whole records, in an order that is shuffled for each block. The records of a source come in
// shuffled passes: each once before any comes again.
//
// Every position is computed independently, in a few hundred nanoseconds; an epoch takes 8 KiB for the
// shares.
type Mix struct {
	first []int    // number of each source's first record
	size  []int    // records of each source
	start []int    // each source's first place in owner
	share []int    // positions of each source in a block
	owner []uint16 // source of each place of a block before it is shuffled
	draws int
	id    string
}

// mixBlock is the number of positions that shares are of.
const mixBlock = 4096

var _ interface {
	Identifier
	Validator
	Repeater
} = (*Mix)(nil)

// NewMix returns the Sampler for sources with these numbers of records, which are concatenated in
// this order; see the Sizes of a combine.Concat. There is one weight per source, and only their
// ratios matter. draws is the number of positions of an epoch, at least 1.
func NewMix(sizes []int, weights []float64, draws int) (*Mix, error) {
	if len(weights) != len(sizes) || len(weights) > mixBlock {
		return nil, fmt.Errorf("sampler: mix: %d weights for %d sources; give one weight per source, for at most %d sources",
			len(weights), len(sizes), mixBlock)
	}
	ends, n := make([]int, len(sizes)), 0
	for i, size := range sizes {
		if size < 0 {
			return nil, fmt.Errorf("sampler: mix: source %d has %d records", i, size)
		}
		n += size
		ends[i] = n
	}
	if draws < 1 {
		return nil, fmt.Errorf("sampler: mix: %d draws; an epoch must have at least 1: the sum of sizes draws as many as "+
			"there are records", draws)
	}
	sum, err := checkWeights(weights)
	if err != nil {
		return nil, err
	}
	m := &Mix{draws: draws, share: shares(weights, sum), id: fmt.Sprintf("mix(%s,%d)", digest.Of(weights, ends), draws)}
	for i, size := range sizes {
		m.first, m.size, m.start = append(m.first, ends[i]-size), append(m.size, size), append(m.start, len(m.owner))
		for range m.share[i] {
			m.owner = append(m.owner, uint16(i))
		}
		if m.share[i] > 0 && size == 0 {
			return nil, fmt.Errorf("sampler: mix: source %d has a positive weight, and no records", i)
		}
	}
	return m, m.check(weights)
}

// check reports a source that would never be drawn from.
func (m *Mix) check(weights []float64) error {
	for i, w := range weights {
		if w > 0 && m.share[i] == 0 {
			return errors.New("sampler: mix: a positive weight is so small that its source would never be drawn from; weights " +
				"must be at least 1/4096 of their sum")
		}
	}
	return nil
}

// shares divides a block by weights: by largest remainder, the first of equals.
func shares(weights []float64, sum float64) []int {
	n := make([]int, len(weights))
	rest := make([]float64, len(weights))
	left := mixBlock
	for i, w := range weights {
		exact := w / sum * mixBlock
		n[i] = int(math.Floor(exact))
		rest[i] = exact - float64(n[i])
		left -= n[i]
	}
	for ; left > 0; left-- {
		i := slices.Index(rest, slices.Max(rest))
		n[i]++
		rest[i] = -1
	}
	return n
}

// Epoch returns the draws of an epoch.
func (m *Mix) Epoch(_ int, seed uint64, epoch int) Sequence {
	return mixSequence{m, permute.Key(seed, epoch, mixKey)}
}

// mixKey is the number of the keys of mixing.
const mixKey = 1<<16 + 3

// ID returns a digest of weights and sizes.
func (m *Mix) ID() string { return m.id }

// Validate reports that the mix was made for another source.
func (m *Mix) Validate(n int) error {
	if all := m.first[len(m.first)-1] + m.size[len(m.size)-1]; all != n {
		return fmt.Errorf("mix: made for %d records; the Source has %d", all, n)
	}
	return nil
}

// Repeats reports that a record may come more than once in an epoch.
func (m *Mix) Repeats() bool { return true }

type mixSequence struct {
	*Mix
	key uint64
}

func (s mixSequence) Len() int { return s.draws }

func (s mixSequence) Fill(pos int, dst []int) {
	var w mixing
	for len(dst) > 0 {
		n := min(len(dst), mixLanes, mixBlock-pos%mixBlock)
		w.fill(s, pos, dst[:n])
		pos, dst = pos+n, dst[n:]
	}
}

// mixLanes is how many positions are computed at a time, so that those of a part share the keys of
// its rounds.
const mixLanes = 256

// mixing is the work of one Fill.
type mixing struct {
	rounds permute.Swaps
	x      [mixLanes]uint64 // positions in the block, and then the records of one part
	places [mixLanes]int    // in dst, of those
	pass   [mixLanes]int    // of the part; -1 once the record is known
	part   [mixLanes]uint16
}

// fill sets dst to the records from pos on, at most mixLanes, in one block: which
// part has the place in the block, and how many of that part came before.
func (w *mixing) fill(s mixSequence, pos int, dst []int) {
	block, place := pos/mixBlock, pos%mixBlock
	for i := range dst {
		w.x[i] = uint64(place + i)
	}
	w.rounds.Prepare(mixBlock, s.key+permute.Mix64(uint64(block)))
	w.rounds.Permute(w.x[:len(dst)])
	for i, slot := range w.x[:len(dst)] {
		part := s.owner[slot]
		drawn := block*s.share[part] + int(slot) - s.start[part]
		w.part[i], w.pass[i], dst[i] = part, drawn/s.size[part], drawn%s.size[part]
	}
	for i := range dst {
		if w.pass[i] >= 0 {
			w.draw(s, dst, i)
		}
	}
}

// draw finishes place i of dst and those after it that are of the same pass of the same part.
func (w *mixing) draw(s mixSequence, dst []int, i int) {
	part, pass, n := w.part[i], w.pass[i], 0
	for j := i; j < len(dst); j++ {
		if w.part[j] == part && w.pass[j] == pass {
			w.x[n], w.places[n], w.pass[j] = uint64(dst[j]), j, -1
			n++
		}
	}
	w.rounds.Prepare(uint64(s.size[part]), permute.Mix64(s.key+permute.Mix64(uint64(part)<<40+uint64(pass)+1)))
	w.rounds.Permute(w.x[:n])
	for k, j := range w.places[:n] {
		dst[j] = s.first[part] + int(w.x[k])
	}
}
