package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// positions shows batches to the client, and takes slots back, by numbers in the shared memory. A
// message costs a system call and a wakeup on each side, which for small batches is more than the
// batch; here, a message is only sent to wake an end that sleeps. docs/feed.md has the layout and
// the order of reads and writes.
//
// Batches are numbered by tickets, 0, 1, ..., and slots that are given back by their count. The
// word of a ticket is written last, by an atomic store, and has the slot in it; the client computes
// from the slot where the header is. So a client that sees the word also sees the header, on every
// CPU.
//
// Both ends sleep in the same way: they announce what they wait for, look once more, and then
// sleep. The other end publishes first and looks at the announcement afterwards, so one of the two
// notices.
type positions struct {
	memory []byte
	where  positionsAt
	ticket uint64 // of the next batch; used by publish only
	taken  uint64 // number of slots that were taken back; used by take only
	slots  []int  // used by take only
	woken  chan struct{}
}

// The words before the rings, each on a cache line of its own, so that the two processes do not
// fight for a line.
const (
	clientWaits = 0   // the number (ticket) of the batch for which the client sleeps, plus 1; the client writes it
	slotsGiven  = 64  // the number of slots that the client has given back; the client writes it
	feedWaits   = 128 // the number of the given-back slot for which feed sleeps, plus 1
	readyRing   = 192 // by ticket: the slot in the lowest 8 bits, and above them the ticket plus 1
	slotBits    = 8
	// A header has 9 numbers: epoch, step, next epoch, next step, count, messages, size, indices,
	// mask; then offset and file of each field.
	fixedNumbers = 9
)

// newPositions allocates the positions of a session in its arena. The rings have the next power of
// two of slots as their length.
func newPositions(a *arena, slots, fields int) (*positions, error) {
	n := 1
	for n < slots {
		n *= 2
	}
	at := positionsAt{Slots: n, Stride: aligned(8 * (fixedNumbers + 2*fields))}
	at.Headers = aligned(readyRing + 2*8*n)
	memory, err := a.Alloc(at.Headers + at.Stride*slots)
	if err != nil {
		return nil, err
	}
	at.At = a.offset(memory)
	return &positions{memory: memory, where: at, woken: make(chan struct{}, 1)}, nil
}

// word returns the word at an offset. Offsets are multiples of 8, and the memory starts on a page,
// so the word is aligned for atomic access.
func (p *positions) word(at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&p.memory[at : at+8][0]))
}

// publish shows a batch to the client, and reports whether the client sleeps until this batch
// comes. messages is the number of messages that the client has to read before the batch.
func (p *positions) publish(b *batch, messages uint64) (wake bool) {
	header := p.memory[p.where.Headers+b.Slot*p.where.Stride:]
	numbers := [fixedNumbers]int64{int64(b.Epoch), int64(b.Step), int64(b.Next[0]), int64(b.Next[1]), int64(b.Count),
		int64(messages), b.Size, b.Indices, b.Mask}
	for i, x := range numbers {
		binary.NativeEndian.PutUint64(header[8*i:], uint64(x))
	}
	for i, f := range b.Fields {
		binary.NativeEndian.PutUint64(header[8*(fixedNumbers+2*i):], uint64(f.At))
		binary.NativeEndian.PutUint64(header[8*(fixedNumbers+2*i+1):], uint64(f.File))
	}
	place := readyRing + 8*int(p.ticket%uint64(p.where.Slots))
	p.ticket++
	p.word(place).Store(p.ticket<<slotBits | uint64(b.Slot))
	return p.word(clientWaits).Load() == p.ticket
}

// take returns the slots that the client has given back since the last call. The memory is the
// client's, too, so the count is checked.
func (p *positions) take() ([]int, error) {
	given, n := p.word(slotsGiven).Load(), uint64(p.where.Slots)
	if given-p.taken > n {
		return nil, fmt.Errorf("the client gave back %d slots at once, of %d", given-p.taken, n)
	}
	slots := p.slots[:0]
	for ; p.taken < given; p.taken++ {
		slots = append(slots, int(p.word(readyRing+8*int(n+p.taken%n)).Load()))
	}
	p.slots = slots
	return slots, nil
}

// skip counts the slots that the client has given back so far as seen: their batches belong to an
// earlier start.
func (p *positions) skip() { p.taken = p.word(slotsGiven).Load() }

// wake ends a wait for slots.
func (p *positions) wake() {
	select {
	case p.woken <- struct{}{}:
	default: // it was woken, and has not looked yet
	}
}

// await releases the slots that the client has given back, and waits until a slot is free.
func (p *positions) await(ctx context.Context, free <-chan int, release func(slots []int) error) error {
	for {
		if err := p.collect(release); err != nil || len(free) > 0 {
			return err
		}
		p.word(feedWaits).Store(p.taken + 1)
		if err := p.collect(release); err != nil || len(free) > 0 { // after the store, see above
			return err
		}
		select {
		case <-p.woken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collect releases the slots that the client has given back.
func (p *positions) collect(release func(slots []int) error) error {
	slots, err := p.take()
	if err != nil {
		return err
	}
	return release(slots)
}
