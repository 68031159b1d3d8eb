package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// alignment of every field in a slot's memory: what vector loads and tensor cores ask for.
const alignment = 256

// field is one field of the batches on a device.
type field struct {
	in, out tensor.Spec
	norm    *normalizer // nil copies
	direct  *mapping    // nil if it is the Loader's
}

// region is where a field lies in a slot: its bytes as they were copied, and the results.
// They are the same place where nothing is normalized.
type region struct {
	raw, out uint64
	room     int // rows for which there is memory
	rows     int // of this batch: its records or, where these have lengths of their own, theirs
}

// slot is the place of one batch on a device. It goes round between the lane's free
// channel, the goroutine that loads it, and the consumer; whoever has it owns it.
//
// What keeps it right is two events. copied is recorded on the slot's stream behind the
// copies and the kernels that normalize: the consumer's streams wait for it, and so does
// whoever reuses the memory that was copied from. used is recorded on the consumer's stream
// behind its work: the slot's stream waits for it before it copies the next batch.
type slot struct {
	p      *Prefetcher
	lane   *lane
	dev    *Device
	stream uintptr
	copied uintptr
	used   uintptr

	mem     uint64 // device memory; 0 until the first batch
	regions []region
	src     [][]byte // of this batch, what the Loader made; nil for a field of Direct
	borrows bool     // some of it is copied from there
	stage   [][]byte // page-locked memory of a field, where it is needed
	ipc     *[64]byte

	indices     []int
	valid       []bool
	epoch, step int

	gen atomic.Uint64 // counts batches and their ends; a Batch of another generation is stale

	mu       sync.Mutex
	inUse    bool // used was recorded, and no copy waits for it yet
	touched  bool // the consumer has asked for something that its streams may use
	kept     bool // by Keep
	holds    int  // the loop body or Keep, and every capsule
	retained bool // is counted in lane.held
}

// newSlot makes the stream and the events of a slot.
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

// load queues everything that brings b to the device. If it fails, nothing reads b any
// more.
func (s *slot) load(ctx context.Context, b loader.Batch) error {
	err := s.queue(ctx, b)
	if err != nil {
		return errors.Join(err, s.drain())
	}
	return nil
}

func (s *slot) queue(ctx context.Context, b loader.Batch) error {
	if err := s.p.setPlan(b); err != nil {
		return err
	}
	s.indices = append(s.indices[:0], b.Indices()...)
	s.valid = append(s.valid[:0], b.Valid()...)
	s.epoch, s.step, s.borrows = b.Epoch(), b.Step(), false
	if err := s.measure(b); err != nil {
		return err
	}
	if s.inUse {
		if err := s.dev.order(s.stream, s.used); err != nil {
			return err
		}
		s.inUse = false
	}
	for i, f := range s.p.plan {
		if err := s.copyField(ctx, i, f); err != nil {
			return err
		}
	}
	return s.dev.record(s.copied, s.stream)
}

// copyField queues the copy of a field, and what normalizes it.
func (s *slot) copyField(ctx context.Context, i int, f *field) error {
	var err error
	if f.direct != nil {
		err = s.copyDirect(ctx, i, f)
	} else {
		err = s.copyHost(i)
	}
	if err != nil || f.norm == nil {
		return err
	}
	at := s.regions[i]
	total := at.rows * f.out.Shape.Elems()
	if total == 0 {
		return nil
	}
	s.p.count(func(st *Stats) { st.Normalized += int64(total) })
	return s.dev.normalize(f.norm, s.mem+at.out, s.mem+at.raw, total, s.stream)
}

// copyHost queues the copy of a field that the Loader made.
func (s *slot) copyHost(i int) error {
	src := s.src[i]
	if locked.holds(src) {
		s.p.count(func(st *Stats) { st.PinnedBytes += int64(len(src)) })
		s.borrows = true
		return s.copy(s.mem+s.regions[i].raw, src)
	}
	stage, err := s.staging(i, len(src))
	if err != nil {
		return err
	}
	copy(stage, src)
	return s.copyStaged(i, stage)
}

// copyDirect queues the copies of a field from the dataset's own memory: of each run of
// records, if these are long enough.
func (s *slot) copyDirect(ctx context.Context, i int, f *field) error {
	size := f.in.RecordBytes()
	total := len(s.indices) * size
	if n := countRuns(s.indices); f.direct.base == nil || n > 1 && total/n < minRun {
		stage, err := s.staging(i, total)
		if err != nil {
			return err
		}
		if err := s.p.opts.Direct.Source.Gather(ctx, f.in.Name, s.indices, stage); err != nil {
			return fmt.Errorf("cuda: batch %d: field %q: %w", s.step, f.in.Name, err)
		}
		return s.copyStaged(i, stage)
	}
	s.p.count(func(st *Stats) { st.DirectBytes += int64(total) })
	return runs(s.indices, func(at, first, n int) error {
		return s.copy(s.mem+s.regions[i].raw+uint64(at*size), f.direct.base[first*size:(first+n)*size])
	})
}

// copyStaged queues the copy of bytes that were written to the slot's own memory.
func (s *slot) copyStaged(i int, stage []byte) error {
	s.p.count(func(st *Stats) { st.StagedBytes += int64(len(stage)) })
	return s.copy(s.mem+s.regions[i].raw, stage)
}

// copy queues a copy from page-locked memory.
func (s *slot) copy(dst uint64, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	s.p.count(func(st *Stats) { st.Copies++ })
	return s.dev.do("cuMemcpyHtoDAsync", func() Result {
		return s.dev.drv.MemcpyHtoDAsync(dst, unsafe.Pointer(unsafe.SliceData(src)), uintptr(len(src)), s.stream)
	})
}

// staging returns n bytes of page-locked memory of the slot, which nothing reads any more.
func (s *slot) staging(i, n int) ([]byte, error) {
	if s.stage[i] == nil {
		b, err := s.dev.pin(s.regions[i].room * s.p.plan[i].in.RecordBytes())
		if err != nil {
			return nil, err
		}
		s.stage[i] = b
	} else if err := s.settle(s.copied); err != nil {
		return nil, err
	}
	return s.stage[i][:n:n], nil
}

// measure finds the batch's fields, and sees to it that the slot has room for them.
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
				return fmt.Errorf("cuda: batch %d: field %q: %d bytes are not %d rows of shape %v as before", b.Step(), f.in.Name, len(s.src[i]), r.rows, f.in.Shape)
			}
		}
		fits = fits && r.rows <= r.room
	}
	if fits {
		return nil
	}
	return s.grow()
}

// grow gives the slot memory for at least the rows that there are now. Where it had some
// before, as lengths vary, there is an eighth to spare.
func (s *slot) grow() error {
	again := s.mem != 0
	if err := s.shrink(); err != nil {
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
			r.room = r.rows + r.rows/8
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

// shrink gives the slot's memory back, after all that is done with it.
func (s *slot) shrink() error {
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
			errs = append(errs, s.dev.unpin(b))
			s.stage[i] = nil
		}
	}
	errs = append(errs, s.dev.freeMemory(s.mem))
	s.mem, s.ipc = 0, nil
	return errors.Join(errs...)
}

// settle waits for an event. Where that fails, it waits for everything: an event of a
// broken context is done only when the context is.
func (s *slot) settle(event uintptr) error {
	err := s.dev.await(event)
	if err != nil {
		_ = s.dev.Synchronize() // the error that counts is the event's
	}
	return err
}

// drain waits for everything that is queued on the slot's stream.
func (s *slot) drain() error {
	err := s.dev.SynchronizeStream(Stream(s.stream))
	if err != nil {
		_ = s.dev.Synchronize() // as in settle
	}
	return err
}

// close frees the slot, after all that is done with it.
func (s *slot) close() error {
	return errors.Join(s.shrink(), s.free())
}

// free ends the stream and the events.
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

// setPlan finds out what batches are made of, from the first one. The goroutine of a loop
// alone calls it.
func (p *Prefetcher) setPlan(b loader.Batch) error {
	if p.plan != nil {
		return nil
	}
	var plan []*field
	for _, name := range p.opts.Fields {
		v, err := hostField(b, name)
		if err != nil {
			return err
		}
		plan = append(plan, &field{in: tensor.Spec{Name: name, DType: v.DType(), Shape: v.Shape()[1:]}})
	}
	for _, m := range p.maps {
		plan = append(plan, &field{in: m.spec, direct: m})
	}
	for _, f := range plan {
		f.out = f.in
		if n, ok := p.opts.Normalize[f.in.Name]; ok {
			var err error
			if f.out, f.norm, err = n.of(f.in); err != nil {
				return fmt.Errorf("cuda: Normalize: %w", err)
			}
		}
	}
	p.plan = plan
	return nil
}

// offsets is the end of a name that stands for where the records of a field of variable
// length begin.
const offsets = ".offsets"

// hostField returns a field of a batch of the Loader, which panics if there is none.
func hostField(b loader.Batch, name string) (v tensor.View, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cuda: options: Fields: %v", p)
		}
	}()
	if of, ok := strings.CutSuffix(name, offsets); ok {
		at := b.Offsets(of)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(at))), 8*len(at))
		return tensor.Of(tensor.Spec{Name: name, DType: tensor.Int64}, len(at), bytes), nil
	}
	return b.Field(name), nil
}
