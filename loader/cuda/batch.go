package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/penstock/penstock/tensor"
)

// Batch is one step's records on a device: a small value that may be copied freely. It is
// valid in the loop body that receives it, or from Keep on, until Done; all its methods
// panic after that time.
//
// The consumer says on which of its streams it works: Wait before the work is queued there,
// Done after it.
//
//	for b, err := range pf.Epoch(ctx, epoch) {
//		if err != nil {
//			return err
//		}
//		if err := b.Wait(stream); err != nil {
//			return err
//		}
//		x := b.Field("images")
//		... // queue work on stream that reads x.Ptr
//		if err := b.Done(stream); err != nil {
//			return err
//		}
//	}
//
// Neither waits on the host. A body that ends without Done makes the host wait for the whole
// device: as right, but slow, and counted in Stats.Unfinished.
type Batch struct {
	s   *slot
	gen uint64
}

// Tensor is a field of a batch: dense, C order, in the memory of a device.
type Tensor struct {
	Ptr    uint64 // CUdeviceptr; a multiple of 256
	DType  tensor.DType
	Shape  tensor.Shape // the first axis is the batch's records; of a field of variable length, all their rows
	Device int          // ordinal
}

// Bytes returns the size of the tensor.
func (t Tensor) Bytes() int { return t.DType.Size() * t.Shape.Elems() }

const stale = "cuda: a Batch is used after its time: it is valid in the loop body that receives it, or from Keep " +
	"on, until Done"

// begin hands the slot to the consumer as a new batch. The new generation makes every older Batch
// of the slot stale.
func (s *slot) begin() Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched, s.kept, s.holds = false, false, 1
	return Batch{s, s.gen.Add(1)}
}

// slot returns the batch's slot, and panics if the slot was reused.
func (b Batch) slot() *slot {
	if b.s == nil || b.s.gen.Load() != b.gen {
		panic(stale)
	}
	return b.s
}

// touch is slot for results that streams of the consumer may use. leave then knows that a body
// without Done may have queued work.
func (b Batch) touch() *slot {
	s := b.slot()
	s.mu.Lock()
	s.touched = true
	s.mu.Unlock()
	return s
}

// Device returns the device that holds the batch.
func (b Batch) Device() *Device { return b.slot().dev }

// Indices returns the numbers of the records in the Source. The slice is valid for as long
// as the Batch and must not be written to.
func (b Batch) Indices() []int { return b.slot().indices }

// Mask returns one bool per record: whether the record counts, as in loader.Batch.Mask.
func (b Batch) Mask() []bool { return b.slot().valid }

// Len returns the number of records.
func (b Batch) Len() int { return len(b.slot().indices) }

// Epoch returns the number of the epoch.
func (b Batch) Epoch() int { return b.slot().epoch }

// Step returns the number of the batch in its epoch, from 0.
func (b Batch) Step() int { return b.slot().step }

// Field returns where a field is on the device. Its bytes are valid for work on a stream that waits
// for the batch, see Wait. Field panics if neither Options.Fields nor Direct names the field.
func (b Batch) Field(name string) Tensor {
	s := b.touch()
	return s.field(name)
}

// field returns the location of a field in the slot's memory.
func (s *slot) field(name string) Tensor {
	for i, f := range s.p.plan {
		if f.in.Name == name {
			shape := append(tensor.Shape{s.regions[i].rows}, f.out.Shape...)
			return Tensor{s.mem + s.regions[i].out, f.out.DType, shape, s.dev.ordinal}
		}
	}
	panic("cuda: the batch has no field " + name + "; see Options.Fields")
}

// Ready returns the CUevent that is recorded after the batch's copy: for libraries that
// wait for events themselves. Others use Wait or Synchronize.
func (b Batch) Ready() uintptr { return b.touch().copied }

// Stream returns the stream on which the batch was copied. Work that is queued there needs
// no Wait, and holds up no other batch.
func (b Batch) Stream() Stream { return Stream(b.touch().stream) }

// Wait makes a stream wait until the batch is on the device, before the work that is queued
// from now on. The host does not wait.
func (b Batch) Wait(stream Stream) error {
	s := b.touch()
	if err := s.dev.valid(stream); err != nil {
		return err
	}
	return s.dev.order(uintptr(stream), s.copied)
}

// Synchronize blocks until the batch is on the device.
func (b Batch) Synchronize() error { return b.slot().settle(b.s.copied) }

// Done ends the batch. Its memory is given to the next batch as soon as the stream has completed
// the work that is queued by now; the host does not wait. Work on several streams must be joined to
// one stream first. After ErrThreadStream and ErrCapturing the batch is still valid: call Done
// again with another stream. On any other error the host has waited for the device, and the batch
// has ended.
func (b Batch) Done(stream Stream) error {
	err := b.slot().dev.valid(stream)
	if errors.Is(err, ErrThreadStream) || errors.Is(err, ErrCapturing) {
		return err
	}
	if !b.s.gen.CompareAndSwap(b.gen, b.gen+1) {
		panic(stale)
	}
	return b.s.end(stream, err)
}

// Keep makes the batch valid beyond its loop body and its epoch, until Done. At most
// Options.Prefetch batches of a device can be held; one more is an error, which wraps ErrKept. One
// slot always remains for the loop itself.
func (b Batch) Keep() error {
	s := b.slot()
	if err := s.retain(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = true
	return nil
}

// CopyTo waits for a field and copies it to the host: to look at it, not to train with it.
func (b Batch) CopyTo(dst []byte, name string) error {
	s := b.slot()
	t := s.field(name)
	if len(dst) != t.Bytes() {
		return fmt.Errorf("cuda: field %q has %d bytes, and there is memory for %d", name, t.Bytes(), len(dst))
	}
	if len(dst) == 0 {
		return nil
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	p := unsafe.Pointer(unsafe.SliceData(dst))
	pin.Pin(p)
	err := s.dev.do("cuMemcpyDtoHAsync", func() Result {
		return s.dev.drv.MemcpyDtoHAsync(p, t.Ptr, uintptr(len(dst)), s.stream)
	})
	if e := s.drain(); err == nil {
		err = e
	}
	return err
}

// retain counts the slot among the slots that are held beyond their loop bodies. The Prefetcher's
// lock is always taken before the lock of a slot.
func (s *slot) retain() error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retained {
		return nil
	}
	if s.lane.held == s.p.opts.Prefetch {
		return fmt.Errorf("cuda: device %d: batch %d: %w", s.dev.ordinal, s.step, ErrKept)
	}
	s.retained = true
	s.lane.held++
	return nil
}

// end ends one hold on the slot, after the work that the stream has by now. err says why the stream
// is not valid; then the host waits instead.
func (s *slot) end(stream Stream, err error) error {
	return joinErrors(s.markUsed(stream, err), s.drop())
}

// markUsed makes the next copy into the slot wait for the work that the stream has by now, and for
// all work that was recorded before: the stream first waits for the old event, because recording
// the event again replaces what it stood for.
func (s *slot) markUsed(stream Stream, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.inUse {
		err = s.dev.order(uintptr(stream), s.used)
	}
	if err == nil {
		err = s.dev.record(s.used, uintptr(stream))
	}
	if err == nil {
		s.inUse = true
		return nil
	}
	s.inUse = false
	_ = s.dev.Synchronize() // an error of this wait is dropped: err, which made the wait necessary, is reported
	return err
}

// leave ends the batch with its loop body, unless Done or Keep was called. A body that has asked
// for a field may have queued work on any stream, so that the host waits for the whole device.
func (b Batch) leave() {
	s := b.s
	s.mu.Lock()
	mine := !s.kept && s.gen.CompareAndSwap(b.gen, b.gen+1)
	touched := s.touched
	s.mu.Unlock()
	if !mine {
		return
	}
	var err error
	if touched {
		s.p.count(func(st *Stats) { st.Unfinished++ })
		err = s.dev.Synchronize()
	}
	if err := joinErrors(err, s.drop()); err != nil {
		s.p.fail(err)
	}
}

// drop ends one hold. With the last hold the slot becomes free, and a closed Prefetcher frees its
// memory.
func (s *slot) drop() error {
	s.p.mu.Lock()
	s.mu.Lock()
	s.holds--
	free := s.holds == 0
	if free && s.retained {
		s.retained = false
		s.lane.held--
	}
	s.mu.Unlock()
	s.p.mu.Unlock()
	if !free {
		return nil
	}
	s.lane.free <- s
	return s.p.sweep()
}
