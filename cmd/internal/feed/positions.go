package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// positions are batches that are ready, and slots that are given back, as numbers in the shared memory. A message goes
// over the connection only to wake the other end. docs/feed.md has the layout, and what orders reads and writes.
//
// Batches are numbered by tickets from 0 on, and slots that are given back by a count of them. A ticket's word is
// written last, by an atomic store, and has the slot, from whose number the client finds all else: so its reads follow
// each other on every CPU.
type positions struct {
	memory []byte
	where  positionsAt
	ticket uint64 // of the next batch; for publish alone
	taken  uint64 // slots that were given back and are taken; for take alone
	slots  []int  // for take alone
	woken  chan struct{}
}

// Words before the rings, each on a cache line.
const (
	clientWaits = 0   // 1 more than the ticket that the client sleeps for; written by the client
	slotsGiven  = 64  // how many slots the client has given back; written by it
	feedWaits   = 128 // 1 more than the number of the slot that feed sleeps for, in the order of giving back
	readyRing   = 192 // by ticket: slot, and 1 more than the ticket above its 8 bits
	slotBits    = 8
	// of a header: epoch, step, next epoch, next step, count, messages, size, indices, mask; then at and file of each
	// field
	fixedNumbers = 9
)

// newPositions returns the positions of a session in memory of its arena.
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

// word returns a number of the memory. Its place is a multiple of 8 in memory that starts on a page.
func (p *positions) word(at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&p.memory[at : at+8][0]))
}

// publish shows a batch to the client, and reports whether it sleeps until this one comes. Messages is how many the
// client is to read before.
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

// take returns slots that the client has given back. It is an error if they are more than there are.
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

// skip counts the slots that the client has given back so far as seen: they held batches of an epoch before this start.
func (p *positions) skip() { p.taken = p.word(slotsGiven).Load() }

// wake ends a wait for slots.
func (p *positions) wake() {
	select {
	case p.woken <- struct{}{}:
	default: // it was woken, and has not looked yet
	}
}

// await has the slots released that the client has given back, and waits until one is free.
func (p *positions) await(ctx context.Context, free <-chan int, release func(slots []int) error) error {
	for {
		if err := p.collect(release); err != nil || len(free) > 0 {
			return err
		}
		p.word(feedWaits).Store(p.taken + 1)
		if err := p.collect(release); err != nil || len(free) > 0 { // after the store: the client looks in the other order
			return err
		}
		select {
		case <-p.woken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collect has the slots released that the client has given back.
func (p *positions) collect(release func(slots []int) error) error {
	slots, err := p.take()
	if err != nil {
		return err
	}
	return release(slots)
}
