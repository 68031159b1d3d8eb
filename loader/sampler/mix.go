package sampler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
)

// Mix draws from several concatenated sources by weights that may follow a schedule. A batch of w
// records has, from a source with share p, either the floor or the ceiling of p*w records, and
// every rank's slice of a batch has the sources in the same proportion. The records of a source
// come in shuffled passes, each record once before any comes again, and passes continue over the
// epochs of the mix.
//
// The batch at a step is a function of the step, so that a resumed run needs no counters: how often
// each source was drawn before is a sum that Euclid's algorithm computes for each stage of constant
// weights. A stage takes 16 bytes per source.
type Mix struct {
	options MixOptions
	given   Mixture
	first   []int // number of each source's first record
	size    []int // records of each source
	total   int
	steps   int // of an epoch
	draws   int // positions of an epoch
	stages  []mixStage
	id      string
}

// MixOptions configures a Mix. Its JSON is in states of a loader.
type MixOptions struct {
	// Schedule has the weights of the sources, each row from a step on; the first row is for step 0. Steps are counted
	// through all epochs, and do not begin again with each. Only the ratios of weights matter. If Schedule is empty, the
	// weight of a source is its number of records.
	Schedule []MixWeights `json:"schedule,omitempty"`
	// Interpolate changes the weights linearly between the rows of Schedule, in at most 256 stages.
	Interpolate bool `json:"linear,omitempty"`
	// Temperature raises weights to the power of 1/Temperature: above 1 they become more alike. 0 means 1.
	Temperature float64 `json:"temperature,omitempty"`

	Batch int `json:"batch"` // records of a batch of all ranks, BatchSize*World.Size; must be > 0
	// Draws is how many records an epoch has, rounded up to whole batches; 0 means as many as the sources have.
	Draws int `json:"draws,omitempty"`
	// PerBatch fills each batch from one source. The shares are then shares of batches.
	PerBatch bool    `json:"per_batch,omitempty"`
	Ends     MixEnds `json:"ends,omitempty"`
}

// Mixture has the parameters from which a Mix was made.
type Mixture struct {
	Sizes []int `json:"sizes"` // records of each source
	MixOptions
}

// MixWeights are the weights of sources from a step on.
type MixWeights struct {
	Step    int       `json:"step"`
	Weights []float64 `json:"weights"`
	// Drawn is how many records, or batches of a Mix with PerBatch, came of each source before Step. [Reweigh] sets it.
	Drawn []int `json:"drawn,omitempty"`
}

// MixEnds says what happens when all records of a source were drawn.
type MixEnds int

const (
	// MixRepeat begins the next pass of the source, in another order.
	MixRepeat MixEnds = iota
	// MixStop ends the epoch before the first batch for which a source has too few records left.
	MixStop
	// MixRescale draws from the other sources in their proportions, until each record came once.
	MixRescale
)

// mixStage is a range of steps with constant weights.
type mixStage struct {
	first  uint64   // step
	slots  uint64   // of a batch: records, or 1 if a batch has one source
	turn   uint64   // distance of the slots of positions that follow each other
	bounds []uint64 // by source: the end of its part of the slots, in units of 2^-32
	drawn  []uint64 // by source: the slots of earlier steps
}

// Limits of a Mix.
const (
	maxMixed       = 1 << 12 // sources
	maxRescaled    = 1 << 10 // with MixRescale, whose stages are as many as the sources
	maxMixBatch    = 1<<31 - 1
	maxMixRows     = 1 << 12
	mostInterposed = 256 // stages between two rows
)

var _ interface {
	Identifier
	Validator
	Repeater
} = (*Mix)(nil)

// NewMix returns the Sampler for concatenated sources with these numbers of records, in this order;
// see the Sizes of a combine.Concat.
func NewMix(sizes []int, o MixOptions) (*Mix, error) {
	m, err := newMix(sizes, o)
	if err != nil {
		return nil, fmt.Errorf("sampler: mix: %w", err)
	}
	return m, nil
}

func newMix(sizes []int, o MixOptions) (*Mix, error) {
	given := Mixture{slices.Clone(sizes), o}
	if len(o.Schedule) == 0 {
		row := MixWeights{Weights: make([]float64, len(sizes))}
		for i, n := range sizes {
			row.Weights[i] = float64(n)
		}
		o.Schedule = []MixWeights{row}
	}
	if o.Temperature == 0 {
		o.Temperature = 1
	}
	m := &Mix{options: o, given: given, size: slices.Clone(sizes)}
	for i, n := range sizes {
		if n < 0 || m.total+n < 0 {
			return nil, fmt.Errorf("source %d has %d records", i, n)
		}
		m.first = append(m.first, m.total)
		m.total += n
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	of := fmt.Sprint(o.Schedule, o.Interpolate, o.Temperature, o.Draws, o.PerBatch, o.Ends)
	m.id = fmt.Sprintf("mix(%s)", digest.Of(sizes, of))
	if err := m.setStages(o.Schedule, o.Interpolate); err != nil {
		return nil, err
	}
	return m, m.setLength()
}

// check refuses options that contradict each other or the sources.
func (m *Mix) check() error {
	o := &m.options
	switch {
	case len(m.size) == 0 || len(m.size) > maxMixed:
		return fmt.Errorf("%d sources; there must be from 1 to %d", len(m.size), maxMixed)
	case o.Batch < 1 || o.Batch > maxMixBatch:
		return fmt.Errorf("a batch of all ranks has %d records; it must have from 1 to %d", o.Batch, maxMixBatch)
	case o.Draws < 0 || o.Draws > 0 && o.Ends != MixRepeat:
		return fmt.Errorf("an epoch of %d draws; one of sources that repeat has 1 or more, and one that stops or rescales ends "+
			"by itself", o.Draws)
	case !(o.Temperature > 0) || math.IsInf(o.Temperature, 1):
		return fmt.Errorf("the temperature is %v; it must be positive", o.Temperature)
	case o.Ends < MixRepeat || o.Ends > MixRescale:
		return fmt.Errorf("Ends is %d; it must be MixRepeat, MixStop or MixRescale", int(o.Ends))
	case o.Ends != MixRepeat && len(o.Schedule) > 1:
		return errors.New("a schedule of weights is for sources that repeat; where the epoch stops or rescales, give one row")
	case o.Ends == MixRescale && o.PerBatch:
		return errors.New("rescaling fills the last batches from several sources, and one source a batch was asked for; choose one")
	case o.Ends == MixRescale && len(m.size) > maxRescaled:
		return fmt.Errorf("rescaling is for %d sources at most", maxRescaled)
	case len(o.Schedule) > maxMixRows || o.Schedule[0].Step != 0:
		return fmt.Errorf("the schedule has %d rows and begins at step %d; it has at most %d and begins at 0",
			len(o.Schedule), o.Schedule[0].Step, maxMixRows)
	}
	for i := range o.Schedule {
		if i > 0 && o.Schedule[i].Step <= o.Schedule[i-1].Step {
			return fmt.Errorf("step %d of the schedule follows step %d", o.Schedule[i].Step, o.Schedule[i-1].Step)
		}
		if _, err := m.shares(o.Schedule[i].Weights); err != nil {
			return err
		}
	}
	return nil
}

// shares returns weights after the temperature, scaled to the sum 1.
func (m *Mix) shares(weights []float64) ([]float64, error) {
	if len(weights) != len(m.size) {
		return nil, fmt.Errorf("%d weights for %d sources; give one weight per source", len(weights), len(m.size))
	}
	out := slices.Clone(weights)
	if t := m.options.Temperature; t != 1 {
		for i, w := range weights {
			if w > 0 {
				out[i] = math.Pow(w, 1/t)
			}
		}
	}
	sum, err := checkWeights(out)
	if err != nil {
		return nil, err
	}
	for i, w := range out {
		if out[i] = w / sum; w > 0 && m.size[i] == 0 {
			return nil, fmt.Errorf("source %d has a positive weight, and no records", i)
		}
		if w > 0 && out[i] < 1.0/(1<<31) {
			return nil, fmt.Errorf("source %d has %.2g of the weights; the least is 2^-31, or 0", i, out[i])
		}
	}
	return out, nil
}

// setStages makes the stages of a schedule. An interpolation is a staircase, because the sums of
// earlier draws need constant weights within a stage.
func (m *Mix) setStages(rows []MixWeights, interpolate bool) error {
	m.stages = nil
	for i, row := range rows {
		from, err := m.shares(row.Weights)
		if err != nil {
			return err
		}
		m.addStage(uint64(row.Step), from, row.Drawn)
		if i+1 == len(rows) || !interpolate {
			continue
		}
		to, err := m.shares(rows[i+1].Weights)
		if err != nil {
			return err
		}
		between := rows[i+1].Step - row.Step
		stairs := min(between, mostInterposed)
		mixed := make([]float64, len(from))
		for k := 1; k < stairs; k++ {
			part := float64(k) / float64(stairs)
			for s := range mixed {
				mixed[s] = from[s] + (to[s]-from[s])*part
			}
			m.addStage(uint64(row.Step+between*k/stairs), mixed, nil)
		}
	}
	return nil
}

// addStage adds a stage with the given shares, whose sum is 1. drawn is how often each source was
// drawn before; nil computes it from the earlier stages.
func (m *Mix) addStage(first uint64, shares []float64, drawn []int) {
	s := mixStage{first: first, slots: uint64(m.options.Batch), bounds: make([]uint64, len(shares)),
		drawn: make([]uint64, len(shares))}
	if m.options.PerBatch {
		s.slots = 1
	}
	s.turn = m.turn(s.slots)
	sum := 0.0
	for i, share := range shares {
		sum += share
		s.bounds[i] = min(mixUnit, uint64(math.RoundToEven(sum*mixUnit))) * s.slots
	}
	// sum may differ from 1 by rounding
	for i := len(shares) - 1; i >= 0 && (i == len(shares)-1 || shares[i+1] == 0); i-- {
		s.bounds[i] = mixUnit * s.slots
	}
	for i := range shares {
		switch {
		case drawn != nil:
			s.drawn[i] = uint64(drawn[i])
		case len(m.stages) > 0:
			s.drawn[i] = m.stages[len(m.stages)-1].before(i, first)
		}
	}
	m.stages = append(m.stages, s)
}

// Slots of a batch lie at the places q + u for q = 0, 1, ..., where u is the offset of the step: a multiple of the golden
// ratio, modulo 1. Each source has the slots within its part of the batch, which are its share rounded up or down, and
// the multiples are spread so evenly that the roundings of any number of steps cancel out but for a few records.
const (
	mixUnit  = 1 << 32
	mixTurn  = 2654435769 // of the golden ratio, in units of 2^-32
	mixStart = mixUnit / 2
)

// mixOffset returns the offset u of a step, in units of 2^-32.
func mixOffset(step uint64) uint64 { return (mixStart + step*mixTurn) % mixUnit }

// end returns the end of a source's slots in a step.
func (s *mixStage) end(source int, step uint64) uint64 {
	if source < 0 {
		return 0
	}
	b := s.bounds[source]
	if mixOffset(step) < b%mixUnit {
		return b/mixUnit + 1
	}
	return b / mixUnit
}

// before returns how many slots a source had in all steps before a step of the stage.
func (s *mixStage) before(source int, step uint64) uint64 {
	n := s.drawn[source] + s.ends(source, step)
	if source > 0 {
		n -= s.ends(source-1, step)
	}
	return n
}

// ends returns the sum of end over the stage's steps before a step, in logarithmic time.
func (s *mixStage) ends(source int, step uint64) uint64 {
	b, n, from := s.bounds[source], step-s.first, mixOffset(s.first)
	part := b % mixUnit
	sum := n*(b/mixUnit) + n/mixUnit*part // offsets have the period 2^32
	n %= mixUnit
	if half := uint64(mixUnit / 2); n > half {
		sum += below(half, from, part)
		n, from = n-half, (from+half*mixTurn)%mixUnit
	}
	return sum + below(n, from, part)
}

// below returns how many of n successive offsets, beginning with from, are less than part. n is at
// most 2^31.
func below(n, from, part uint64) uint64 {
	return n + floorSum(n, from) - floorSum(n, from+mixUnit-part)
}

// floorSum returns the sum of floor((mixTurn*i + b) / mixUnit) for i from 0 to n-1. It exchanges
// the roles of both numbers as Euclid's algorithm does, so that it takes a few dozen steps for any
// n.
func floorSum(n, b uint64) (sum uint64) {
	for m, a := uint64(mixUnit), uint64(mixTurn); n > 0; m, a = a, m {
		sum += n*(n-1)/2*(a/m) + n*(b/m)
		a, b = a%m, b%m
		last := a*n + b
		if last < m {
			break
		}
		n, b = last/m, last%m
	}
	return sum
}

// turn returns mixTurnOf(slots). Stages with batches of one size share the result.
func (m *Mix) turn(slots uint64) uint64 {
	if n := len(m.stages); n > 0 && m.stages[n-1].slots == slots {
		return m.stages[n-1].turn
	}
	return mixTurnOf(slots)
}

// mixTurnOf returns a distance, coprime to n, whose multiples modulo n are spread evenly, however
// many there are. The sum of the quotients in Euclid's algorithm bounds how uneven they are, and is
// smallest near the golden ratio.
func mixTurnOf(n uint64) (best uint64) {
	least := uint64(math.MaxUint64)
	golden := n * mixTurn / mixUnit
	for d := max(1, golden-min(golden, 32)); d <= max(1, min(n-1, golden+32)); d++ {
		a, b, sum := n, d, uint64(0)
		for b != 0 {
			a, b, sum = b, a%b, sum+a/b
		}
		if a == 1 && sum < least {
			best, least = d, sum
		}
	}
	return best
}

// setLength sets the number of steps and draws of an epoch.
func (m *Mix) setLength() error {
	o := &m.options
	switch o.Ends {
	case MixRepeat:
		m.steps = (max(1, o.Draws, (1-min(1, o.Draws))*m.total) + o.Batch - 1) / o.Batch
		m.draws = m.steps * o.Batch
	case MixStop:
		m.steps = m.lasts(&m.stages[0], m.size)
		m.draws = m.steps * o.Batch
		if m.steps == 0 {
			return errors.New("a source has fewer records than its share of a batch; choose another end, or a smaller batch")
		}
	default:
		m.rescale()
	}
	return nil
}

// lasts returns for how many steps of a stage no source needs more records than left. The draws
// only grow, so that a binary search finds the end.
func (m *Mix) lasts(s *mixStage, left []int) int {
	each := m.options.Batch / int(s.slots)
	return sort.Search(m.total/m.options.Batch+1, func(n int) bool {
		for i := range left {
			if s.before(i, s.first+uint64(n)+1)-s.drawn[i] > uint64(left[i]/each) {
				return true
			}
		}
		return false
	})
}

// rescale makes the stages of an epoch in which each record comes once: steps with the shares of
// the sources that have records left, and then a step that takes the rest of a source.
func (m *Mix) rescale() {
	shares, _ := m.shares(m.options.Schedule[0].Weights)
	left := slices.Clone(m.size)
	for i, w := range shares {
		if w == 0 {
			left[i] = 0
		}
	}
	whole := slices.Clone(left)
	m.stages, m.steps, m.draws = nil, 0, 0
	for {
		of := make([]float64, len(left))
		sum, rest := 0.0, 0
		for i, n := range left {
			if n > 0 {
				of[i], sum, rest = shares[i], sum+shares[i], rest+n
			}
		}
		if rest == 0 {
			return
		}
		for i := range of {
			of[i] /= sum
		}
		m.addStage(uint64(m.steps), of, nil)
		stage := &m.stages[len(m.stages)-1]
		if n := m.lasts(stage, left); n > 0 {
			for i := range left {
				left[i] -= int(stage.before(i, uint64(m.steps+n)) - stage.drawn[i])
			}
			m.steps, m.draws, rest = m.steps+n, m.draws+n*m.options.Batch, rest-n*m.options.Batch
		} else {
			m.stages = m.stages[:len(m.stages)-1]
		}
		if rest > 0 {
			m.addRest(of, whole, left, min(rest, m.options.Batch))
		}
	}
}

// addRest adds a step of n records. Each source gives its share, or all its remaining records
// if these are fewer; then other sources give more. whole has the records of each source that the epoch draws.
func (m *Mix) addRest(shares []float64, whole, left []int, n int) {
	s := mixStage{first: uint64(m.steps), slots: uint64(n), turn: mixTurnOf(uint64(n)),
		bounds: make([]uint64, len(left)), drawn: make([]uint64, len(left))}
	sum, given := 0.0, 0
	take := make([]int, len(left))
	for i, w := range shares {
		sum += w
		take[i] = min(left[i], max(0, int(math.RoundToEven(sum*float64(n)))-given))
		given += take[i]
	}
	for i := range take { // what others lack
		more := max(0, min(left[i]-take[i], n-given))
		take[i], given = take[i]+more, given+more
	}
	end := 0
	for i := range take {
		end += take[i]
		s.bounds[i] = uint64(end) * mixUnit
		s.drawn[i] = uint64(whole[i] - left[i])
		left[i] -= take[i]
	}
	m.stages, m.steps, m.draws = append(m.stages, s), m.steps+1, m.draws+n
}

// Epoch returns the draws of an epoch. Only with MixRepeat do steps count over epochs; the other
// ends begin every epoch alike, with another shuffle.
func (m *Mix) Epoch(_ int, seed uint64, epoch int) Sequence {
	s := mixSequence{Mix: m, key: permute.Key(seed, 0, mixKey)}
	if m.options.Ends == MixRepeat {
		s.step = uint64(epoch) * uint64(m.steps)
	} else {
		s.pass = uint64(epoch)
	}
	return s
}

// mixKey separates the draws of a Mix from other draws with the same seed.
const mixKey = 1<<16 + 3

// ID returns a digest of sizes and options.
func (m *Mix) ID() string { return m.id }

// Validate refuses a Source whose number of records differs from the records of the mix.
func (m *Mix) Validate(n int) error {
	if m.total != n {
		return fmt.Errorf("mix: made for %d records; the Source has %d", m.total, n)
	}
	return nil
}

// Repeats reports whether a record may come more than once in an epoch.
func (m *Mix) Repeats() bool { return m.options.Ends == MixRepeat }

// Seen returns how many records of each source came before a step of an epoch, in all epochs. dropLast
// says that epochs leave out a last batch that is not full. Seen computes the numbers, as nothing is
// counted.
func (m *Mix) Seen(epoch, step int, dropLast bool) []int {
	out := make([]int, len(m.size))
	at, passes := uint64(epoch)*uint64(m.steps)+uint64(step), 0
	if m.options.Ends != MixRepeat {
		at, passes = uint64(step), epoch
	}
	each := m.options.Batch
	if !m.options.PerBatch {
		each = 1
	}
	end := uint64(m.steps)
	if dropLast {
		end = uint64(m.draws / m.options.Batch)
	}
	for i := range out {
		out[i] = int(m.stage(at).before(i, at)) * each
		if passes > 0 {
			out[i] += passes * int(m.stage(end).before(i, end)) * each
		}
	}
	return out
}

// Mixture returns the parameters from which the Mix was made.
func (m *Mix) Mixture() Mixture { return m.given }

// Sizes returns the number of records of each source.
func (m *Mix) Sizes() []int { return slices.Clone(m.size) }

// MixOf returns the Mix that s is, or that a [Subset] contains; nil for other Samplers.
func MixOf(s Sampler) *Mix {
	switch s := s.(type) {
	case *Mix:
		return s
	case Subset:
		return MixOf(s.Inner)
	}
	return nil
}

// Reweigh returns s with the weights of rows, each from the step of its row on. It also returns the
// rows for a State, with Drawn set: the numbers of records drawn before each row's step. Rows that
// a later row replaces at or before step are left out, as no later draw depends on them. s must be
// a [Mix] that repeats, or a [Subset] of a [Mix] that repeats.
func Reweigh(s Sampler, rows []MixWeights, step int) (Sampler, []MixWeights, error) {
	switch s := s.(type) {
	case Subset:
		inner, rows, err := Reweigh(s.Inner, rows, step)
		s.Inner = inner
		return s, rows, err
	case *Mix:
		return s.reweigh(rows, step)
	}
	return nil, nil, fmt.Errorf("the sampler is %s, which has no weights to set; take a Mix", ID(s))
}

func (m *Mix) reweigh(rows []MixWeights, step int) (Sampler, []MixWeights, error) {
	if m.options.Ends != MixRepeat {
		return nil, nil, errors.New("the weights of a mix are set while its sources repeat; this one ends with a source")
	}
	to := *m
	to.stages = slices.Clone(m.stages)
	out := make([]MixWeights, 0, len(rows))
	for i, row := range rows {
		shares, err := m.shares(row.Weights)
		if err != nil {
			return nil, nil, err
		}
		if row.Step < 0 || i > 0 && row.Step <= rows[i-1].Step || len(rows) > maxMixRows {
			return nil, nil, fmt.Errorf("weights of step %d follow weights of a later step, or are more than %d", row.Step,
				maxMixRows)
		}
		if row.Drawn != nil {
			if err := m.checkDrawn(row); err != nil {
				return nil, nil, err
			}
		}
		from := uint64(row.Step)
		at := sort.Search(len(to.stages), func(k int) bool { return to.stages[k].first > from })
		to.stages = to.stages[:at]
		to.addStage(from, shares, row.Drawn)
		if row.Drawn == nil {
			row.Drawn = make([]int, len(m.size))
			for k, n := range to.stages[len(to.stages)-1].drawn {
				row.Drawn[k] = int(n)
			}
		}
		if row.Step <= step {
			out = out[:0]
		}
		out = append(out, row)
	}
	return &to, out, nil
}

// checkDrawn refuses numbers of draws that are impossible before a step: they may come from a
// damaged State.
func (m *Mix) checkDrawn(row MixWeights) error {
	sum, slots := 0, m.options.Batch
	if m.options.PerBatch {
		slots = 1
	}
	for _, n := range row.Drawn {
		if sum += n; n < 0 {
			return fmt.Errorf("%d draws of a source", n)
		}
	}
	if len(row.Drawn) != len(m.size) || sum != row.Step*slots {
		return fmt.Errorf("%d draws of %d sources before step %d", sum, len(row.Drawn), row.Step)
	}
	return nil
}

type mixSequence struct {
	*Mix
	key  uint64
	step uint64 // of the first batch
	pass uint64 // of all sources, if each has one an epoch
}

func (s mixSequence) Len() int { return s.draws }

func (s mixSequence) Fill(pos int, dst []int) {
	var w mixing
	for len(dst) > 0 {
		n := min(len(dst), mixLanes, s.options.Batch-pos%s.options.Batch)
		w.fill(s, pos, dst[:n])
		pos, dst = pos+n, dst[n:]
	}
}

// stage returns the stage of a step.
func (m *Mix) stage(step uint64) *mixStage {
	return &m.stages[max(0, sort.Search(len(m.stages), func(i int) bool { return m.stages[i].first > step })-1)]
}

// mixLanes is how many positions are computed at a time. Positions of one source share the source's
// sums and the keys of its shuffle.
const mixLanes = 256

// mixing is the working memory of one Fill. It lives on the stack, because Fill must not allocate.
type mixing struct {
	order  permute.Reused
	x      [mixLanes]int    // the records of one source
	places [mixLanes]int    // in dst, of those
	pass   [mixLanes]uint64 // of the source
	part   [mixLanes]uint16 // the source
	state  [mixLanes]uint8  // of the place in dst
}

// States of a place in dst while its record is computed: fill writes the slot, number replaces the
// slot by the number of the record within a pass of its source, and draw replaces that number by
// the record.
const (
	mixSlot   = iota // it has the slot
	mixRecord        // it has the number of the record in its pass
	mixDone
)

// fill sets dst, at most mixLanes long and within one batch, to the records from pos on.
func (w *mixing) fill(s mixSequence, pos int, dst []int) {
	step := s.step + uint64(pos/s.options.Batch)
	g, place := s.stage(step), pos%s.options.Batch
	offset := mixOffset(step)
	shift := permute.Below(permute.Mix64(s.key+permute.Mix64(step)), g.slots)
	for i := range dst {
		slot := uint64(0)
		if !s.options.PerBatch {
			slot = (uint64(place+i)*g.turn + shift) % g.slots
		}
		x := slot<<32 | offset
		w.part[i] = uint16(sort.Search(len(g.bounds), func(k int) bool { return g.bounds[k] > x }))
		w.state[i], dst[i] = mixSlot, int(slot)
	}
	for i := range dst {
		if w.state[i] == mixSlot {
			w.number(s, g, step, place, dst, i)
		}
		if w.state[i] == mixRecord {
			w.draw(s, dst, i)
		}
	}
}

// number computes the pass, and the number within the pass, of place i of dst and of all later
// places with the same source.
func (w *mixing) number(s mixSequence, g *mixStage, step uint64, place int, dst []int, i int) {
	part := int(w.part[i])
	before, size := g.before(part, step), uint64(s.size[part])
	if s.options.PerBatch {
		before *= uint64(s.options.Batch)
	} else {
		before -= g.end(part-1, step)
	}
	for j := i; j < len(dst); j++ {
		if w.part[j] != w.part[i] {
			continue
		}
		n := before + uint64(dst[j])
		if s.options.PerBatch {
			n += uint64(place + j)
		}
		w.pass[j], dst[j], w.state[j] = s.pass+n/size, int(n%size), mixRecord
	}
}

// draw completes place i of dst and all later places of the same pass of the same source.
func (w *mixing) draw(s mixSequence, dst []int, i int) {
	part, pass, n := w.part[i], w.pass[i], 0
	for j := i; j < len(dst); j++ {
		if w.part[j] == part && w.pass[j] == pass && w.state[j] == mixRecord {
			w.x[n], w.places[n], w.state[j] = dst[j], j, mixDone
			n++
		}
	}
	w.order.Prepare(uint64(s.size[part]), permute.Mix64(s.key+permute.Mix64(uint64(part)<<40+pass+1)))
	w.order.Map(w.x[:n])
	for k, j := range w.places[:n] {
		dst[j] = s.first[part] + w.x[k]
	}
}
