package cuda

import (
	"errors"
	"fmt"
)

// Stream is a CUstream (a cudaStream_t is the same) of a device's primary context: work that
// is done in order. One of another library in the process can be converted, for example
// what PyTorch's stream.cuda_stream gives. 0 and 1 are the legacy default stream. 2, the default
// stream of a thread (CU_STREAM_PER_THREAD), is refused with [ErrThreadStream]: it names another
// stream on each thread, and a goroutine has no thread of its own. A stream that is being
// captured into a graph is refused with [ErrCapturing]: wait for the batch before the capture
// begins, copy it to memory that the graph reads, and call Done after the graph was launched.
type Stream uintptr

// ErrThreadStream is returned for the per-thread default stream.
var ErrThreadStream = errors.New(
	"the per-thread default stream (2) orders nothing for a goroutine: use a stream of its own")

// ErrCapturing is returned for a stream that is being captured into a graph. The graph would
// hold the wait for one batch, or its end, and replay that same wait for every later batch.
var ErrCapturing = errors.New("the stream is being captured into a graph: call Wait before the capture, and Done " +
	"after the launch")

// valid returns an error if work on the stream cannot be ordered by events.
func (d *Device) valid(s Stream) error {
	if s == perThreadStream {
		return fmt.Errorf("cuda: %w", ErrThreadStream)
	}
	var status int32
	err := d.do("cuStreamIsCapturing", func() Result { return d.drv.StreamIsCapturing(uintptr(s), &status) })
	if err == nil && status != 0 {
		err = fmt.Errorf("cuda: %w", ErrCapturing)
	}
	return err
}

// NewStream returns a stream that has no order against the default stream. FreeStream ends
// it.
func (d *Device) NewStream() (Stream, error) {
	if err := d.retain(); err != nil {
		return 0, err
	}
	s, err := d.makeStream()
	if err != nil {
		_ = d.drop() // the error that counts is why there is no stream
		return 0, err
	}
	return Stream(s), nil
}

// FreeStream ends a stream of NewStream, after it has done its work.
func (d *Device) FreeStream(s Stream) error {
	err := d.SynchronizeStream(s)
	if e := d.freeStream(uintptr(s)); err == nil {
		err = e
	}
	if e := d.drop(); err == nil {
		err = e
	}
	return err
}

// SynchronizeStream waits until a stream has done its work.
func (d *Device) SynchronizeStream(s Stream) error {
	if err := d.valid(s); err != nil {
		return err
	}
	return d.do("cuStreamSynchronize", func() Result { return d.drv.StreamSynchronize(uintptr(s)) })
}

func (d *Device) makeStream() (s uintptr, err error) {
	err = d.do("cuStreamCreate", func() Result { return d.drv.StreamCreate(&s, streamNonBlocking) })
	return s, err
}

func (d *Device) freeStream(s uintptr) error {
	return d.free("cuStreamDestroy", func() Result { return d.drv.StreamDestroy(s) })
}

// makeEvent returns an event without timing, for which a host thread waits asleep: timing makes
// events slower, and a spinning thread would take a core from the workers.
func (d *Device) makeEvent() (e uintptr, err error) {
	err = d.do("cuEventCreate", func() Result { return d.drv.EventCreate(&e, eventBlockingSync|eventDisableTiming) })
	return e, err
}

func (d *Device) freeEvent(e uintptr) error {
	return d.free("cuEventDestroy", func() Result { return d.drv.EventDestroy(e) })
}

// record makes event stand for the work that the stream has so far.
func (d *Device) record(event, stream uintptr) error {
	return d.do("cuEventRecord", func() Result { return d.drv.EventRecord(event, stream) })
}

// order makes the stream wait for the event before all work that is queued from now on. An event
// that was never recorded does not wait.
func (d *Device) order(stream, event uintptr) error {
	return d.do("cuStreamWaitEvent", func() Result { return d.drv.StreamWaitEvent(stream, event, 0) })
}

// await blocks until the event has happened.
func (d *Device) await(event uintptr) error {
	return d.do("cuEventSynchronize", func() Result { return d.drv.EventSynchronize(event) })
}

// makeMemory allocates n bytes on the device.
func (d *Device) makeMemory(n int) (p uint64, err error) {
	err = d.do(fmt.Sprintf("cuMemAlloc of %d bytes", n), func() Result { return d.drv.MemAlloc(&p, uintptr(n)) })
	return p, err
}

func (d *Device) freeMemory(p uint64) error {
	return d.free("cuMemFree", func() Result { return d.drv.MemFree(p) })
}
