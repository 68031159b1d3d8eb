package schedule

import "github.com/penstock/penstock/loader/internal/order"

// Slots is the memory of slots, which a Schedule knows only by number.
type Slots interface {
	// Extend adds n slots, or as many as there is memory for, and returns how many it added. Their numbers follow
	// the numbers of the other slots. The caller holds the Schedule's lock.
	Extend(n int) int

	// Clear drops the batch that was in a slot.
	Clear(slot int)

	// Idle says that the Schedule is closed, and all slots are free.
	Idle()
}

// state is the state of a slot; the package documentation has the table.
type state int

const (
	free    state = iota // in the free list
	filling              // in the window; a worker makes its batch
	done                 // in the window; the batch is made, or failed
	given                // the loop body has the batch
	kept                 // and Keep holds it
)

// slot is the place of one batch.
type slot struct {
	number int
	state  state
	tick   int
	step   int
	epoch  *order.Epoch
	opens  bool  // other workers wait until this batch is prepared
	inline bool  // the loop makes this batch
	err    error // why the batch could not be made
	pieces pieces
}

// pieces is the progress of a batch that several workers make.
type pieces struct {
	n     int // that the batch was split into
	given int // pieces handed out
	left  int // pieces not done
	errAt int // first record of the piece that failed
}

// slotTable finds slots by number, by tick, and by being free. The Schedule's lock guards it.
type slotTable struct {
	memory    Slots
	all       []*slot // by number
	free      []*slot
	unordered bool
	window    []*slot // the tick t that is being filled or done is at t % len(window)
}

// add adds up to n slots, and returns how many there was memory for.
func (t *slotTable) add(n int) int {
	added := t.memory.Extend(n)
	for range added {
		s := &slot{number: len(t.all)}
		t.all, t.free = append(t.all, s), append(t.free, s)
	}
	return added
}

// assign takes a free slot for a tick: the slot that was freed last, whose memory is most likely in cache.
func (t *slotTable) assign(tick int) *slot {
	last := len(t.free) - 1
	s := t.free[last]
	t.free = t.free[:last]
	s.state, s.tick = filling, tick
	t.window[tick%len(t.window)] = s
	return s
}

// putBack makes a slot free again.
func (t *slotTable) putBack(s *slot) {
	*s = slot{number: s.number}
	t.free = append(t.free, s)
}

// at returns the slot that a tick has in the window, or nil.
func (t *slotTable) at(tick int) *slot { return t.window[tick%len(t.window)] }

// isDone reports whether the batch of a tick is made.
func (t *slotTable) isDone(tick int) bool {
	s := t.at(tick)
	return s != nil && s.state == done
}

// used returns how many slots are not free.
func (t *slotTable) used() int { return len(t.all) - len(t.free) }

// clearWindow takes all slots out of the window and returns their numbers, for the caller to free.
func (t *slotTable) clearWindow() (numbers []int) {
	for i, s := range t.window {
		if s != nil {
			t.window[i], s.state = nil, given
			numbers = append(numbers, s.number)
		}
	}
	return numbers
}

// kept returns the numbers of the slots that are kept.
func (t *slotTable) kept() (numbers []int) {
	for _, s := range t.all {
		if s.state == kept {
			numbers = append(numbers, s.number)
		}
	}
	return numbers
}
