package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/loader"
)

// alignment is the alignment of every field in a slot's memory: what vector loads and tensor cores
// need.
const alignment = 256

// region is where a field lies in a slot: its bytes as copied, and the results. Both are the same
// place if nothing is normalized.
type region struct {
	raw, out uint64
	room     int // rows for which there is memory
	rows     int // of this batch: its records or, where these have lengths of their own, theirs
}

// slot is the place of one batch on a device. It goes round between the lane's free channel, the
// goroutine that loads it, and the consumer; whoever holds it owns it.
//
// Two events order the accesses on the device, without the host. copied is recorded on the slot's
// stream after the copies and the kernels that normalize: the consumer's streams wait for it, and
// so does the goroutine that reuses the memory that was copied from. used is recorded on the
// consumer's stream after its work: the slot's stream waits for it before it copies the next batch.
type slot struct {
	p    *Prefetcher
	lane *lane
	dev  *Device

	ordering
	buffers
	content

	gen atomic.Uint64 // counts batches and their ends; a Batch of another generation is stale

	mu       sync.Mutex
	inUse    bool // used was recorded, and no copy waits for it yet
	touched  bool // the consumer has asked for something that its streams may use
	kept     bool // by Keep
	holds    int  // the loop body or Keep, and every capsule
	retained bool // is counted in lane.held
}

// ordering is the stream and the events of a slot.
type ordering struct {
	stream uintptr
	copied uintptr
	used   uintptr
}

// buffers is the memory of a slot, on the device and on the host.
type buffers struct {
	mem      uint64 // device memory; 0 until the first batch
	regions  []region
	stage    [][]byte // page-locked memory of a field, where it is needed
	outgrown []uint64 // device memory that was too small: kept until the end, as freeing it would wait for the device
	spare    [][]byte // page-locked memory that was too small, kept for the same reason
}

// content is the batch that a slot holds.
type content struct {
	src         [][]byte // what the Loader made; nil for a field of Direct
	borrows     bool     // some of it is copied from there
	indices     []int
	valid       []bool
	epoch, step int
}

// newSlot creates the stream and the events of a slot. Memory follows with the first batch, whose
// size is not known before.
func newSlot(p *Prefetcher, l *lane) (*slot, error) {
	s := &slot{p: p, lane: l, dev: l.dev}
	if err := s.dev.retain(); err != nil {
		return nil, err
	}
	var err error
	if s.stream, err = s.dev.makeStream(); err == nil {
		if s.copied, err = s.dev.makeEvent(); err == nil {
			s.used, err = s.dev.makeEvent()
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.free())
	}
	return s, nil
}

// measure finds the batch's fields and ensures that the slot has room for them.
func (s *slot) measure(b loader.Batch) error {
	if s.regions == nil {
		s.regions = make([]region, len(s.p.plan))
		s.src, s.stage = make([][]byte, len(s.p.plan)), make([][]byte, len(s.p.plan))
	}
	fits := s.mem != 0
	for i, f := range s.p.plan {
		r := &s.regions[i]
		r.rows = b.Len()
		if f.direct == nil {
			v, err := hostField(b, f.in.Name)
			if err != nil {
				return err
			}
			s.src[i], r.rows = v.Bytes(), v.Len()
			if len(s.src[i]) != r.rows*f.in.RecordBytes() {
				return fmt.Errorf("cuda: batch %d: field %q: %d bytes are not %d rows of shape %v as before", b.Step(), f.in.Name,
					len(s.src[i]), r.rows, f.in.Shape)
			}
		}
		fits = fits && r.rows <= r.room
	}
	if fits {
		return nil
	}
	return s.grow()
}

// grow gives the slot memory for at least the present rows. If lengths vary and a field has
// outgrown its room, the field gets twice as much. So all outgrown memory together is less than
// the memory in use, and can be kept until Close: freeing it in the middle of a run would
// synchronize the device.
func (s *slot) grow() error {
	again := s.mem != 0
	if err := s.outgrow(); err != nil {
		return err
	}
	var size uint64
	place := func(n int) uint64 {
		at := size
		size += (uint64(n) + alignment - 1) &^ (alignment - 1)
		return at
	}
	for i, f := range s.p.plan {
		r := &s.regions[i]
		if again && r.rows > r.room {
			r.room = max(2*r.room, r.rows+r.rows/8)
		}
		r.room = max(r.room, r.rows, 1)
		r.raw = place(r.room * f.in.RecordBytes())
		r.out = r.raw
		if f.norm != nil {
			r.out = place(r.room * f.out.RecordBytes())
		}
	}
	mem, err := s.dev.makeMemory(int(size))
	if err != nil {
		return err
	}
	s.mem = mem
	s.p.count(func(st *Stats) { st.DeviceBytes += int64(size) })
	return nil
}

// outgrow sets the slot's memory aside, after all work on it is done.
func (s *slot) outgrow() error {
	if s.mem == 0 {
		return nil
	}
	errs := []error{s.settle(s.copied)}
	if s.inUse {
		errs = append(errs, s.settle(s.used))
		s.inUse = false
	}
	for i, b := range s.stage {
		if b != nil {
			s.spare = append(s.spare, b)
			s.stage[i] = nil
		}
	}
	s.outgrown = append(s.outgrown, s.mem)
	s.mem = 0
	return errors.Join(errs...)
}

// settle waits for an event. If that fails, it waits for the whole device: the event of a broken
// context is never reached.
func (s *slot) settle(event uintptr) error {
	err := s.dev.await(event)
	if err != nil {
		_ = s.dev.Synchronize() // the error that counts is the event's
	}
	return err
}

// drain waits for all work that is queued on the slot's stream.
func (s *slot) drain() error {
	err := s.dev.SynchronizeStream(Stream(s.stream))
	if err != nil {
		_ = s.dev.Synchronize() // as in settle
	}
	return err
}

// close frees the slot's memory, stream and events, after all work on them is done.
func (s *slot) close() error {
	errs := []error{s.outgrow()}
	for _, p := range s.outgrown {
		errs = append(errs, s.dev.freeMemory(p))
	}
	for _, b := range s.spare {
		errs = append(errs, s.dev.unpin(b))
	}
	s.outgrown, s.spare = nil, nil
	return errors.Join(append(errs, s.free())...)
}

// free destroys the stream and the events.
func (s *slot) free() error {
	var errs []error
	for _, e := range []uintptr{s.copied, s.used} {
		if e != 0 {
			errs = append(errs, s.dev.freeEvent(e))
		}
	}
	if s.stream != 0 {
		errs = append(errs, s.dev.freeStream(s.stream))
	}
	return errors.Join(append(errs, s.dev.drop())...)
}
