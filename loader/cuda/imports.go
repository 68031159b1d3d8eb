package cuda

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Imports is memory of other processes that this one has mapped, on one device: the other
// side of Batch.IPC. All methods may be called by any goroutine.
//
//	im, err := dev.NewImports()
//	defer im.Close()
//	for {
//		var h cuda.IPC
//		if err := in.Decode(&h); err != nil { // from the giving process: a json.Decoder, say
//			return err
//		}
//		x, err := im.Open(h)
//		...                                  // queue work on stream that reads x.Ptr
//		err = dev.SynchronizeStream(stream)
//		...                                  // signal the exporting process that it may continue
//	}
//
// The field is on the device when Open returns, so that no stream has to wait for it. The
// host has to wait for the work on it before it reports to the giving process that the field is
// done, as that process then reuses the memory for the next batch; meanwhile it has Prefetch more.
type Imports struct {
	dev *Device

	mu     sync.Mutex
	mapped map[ipcHandle]uint64
	closed bool
}

// NewImports returns Imports on the device, with nothing mapped. They are closed before the
// Device is, and before the giving process closes its Prefetcher.
func (d *Device) NewImports() (*Imports, error) {
	if err := d.retain(); err != nil {
		return nil, err
	}
	return &Imports{dev: d, mapped: make(map[ipcHandle]uint64)}, nil
}

// Open returns a field that another process gave, and maps the memory where it lies, unless
// it is mapped already. The Tensor is valid until this process reports to the giving process that
// it is not needed any more, or Close. The error says what to do where h is of this process, of another
// device, or of a process that has ended; it wraps ErrClosed after Close.
func (m *Imports) Open(h IPC) (Tensor, error) {
	if err := m.check(h); err != nil {
		return Tensor{}, fmt.Errorf("cuda: device %d: open memory of another process: %w", m.dev.ordinal, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Tensor{}, fmt.Errorf("cuda: device %d: Imports: %w", m.dev.ordinal, ErrClosed)
	}
	handle := ipcHandle{h.Handle}
	at, ok := m.mapped[handle]
	if !ok {
		err := m.dev.do("cuIpcOpenMemHandle", func() Result {
			return m.dev.drv.IpcOpenMemHandle(&at, handle, ipcLazyPeerAccess)
		})
		if err != nil {
			return Tensor{}, fmt.Errorf("%w; %s", err, unmapped)
		}
		m.mapped[handle] = at
	}
	return Tensor{at + h.Offset, h.DType, h.Shape, m.dev.ordinal}, nil
}

const unmapped = "has the giving process ended, or closed its Prefetcher? between containers, both need the host's " +
	"IPC and PID namespaces (docker run --ipc=host --pid=host)"

// check returns an error if h is invalid, as far as that is known before it is mapped.
func (m *Imports) check(h IPC) error {
	if h.Process == thisProcess() {
		return errors.New("this process has given it: the driver maps only what others have; use Batch.Field")
	}
	if h.UUID != m.dev.uuid {
		return m.dev.drv.elsewhere(h.UUID)
	}
	size := uint64(h.DType.Size())
	for _, n := range h.Shape {
		if size == 0 || n < 0 || n > 0 && size > math.MaxInt64/uint64(n) {
			return fmt.Errorf("%v of shape %v: not what Batch.IPC returned", h.DType, h.Shape)
		}
		size *= uint64(max(n, 1))
	}
	return nil
}

// elsewhere says where the device of that UUID is.
func (d *driver) elsewhere(uuid string) error {
	var n int32
	if err := d.call("cuDeviceGetCount", d.DeviceGetCount(&n)); err != nil {
		return err
	}
	for i := range n {
		var handle int32
		if d.DeviceGet(&handle, i) != 0 {
			continue
		}
		if found, err := d.uuid(handle); err == nil && found == uuid {
			return fmt.Errorf("it is on device %d: make Imports there", i)
		}
	}
	return fmt.Errorf("it is on the device with the UUID %s, which this process does not see; CUDA_VISIBLE_DEVICES must "+
		"name it in both processes", uuid)
}

// Close unmaps everything, after all that the device still does for this process. Tensors of
// Open must not be used any more. Close of closed Imports returns ErrClosed.
func (m *Imports) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("cuda: device %d: Imports: %w", m.dev.ordinal, ErrClosed)
	}
	m.closed = true
	errs := []error{m.dev.Synchronize()}
	for _, at := range m.mapped {
		errs = append(errs, m.dev.free("cuIpcCloseMemHandle", func() Result { return m.dev.drv.IpcCloseMemHandle(at) }))
	}
	m.mapped = nil
	return errors.Join(append(errs, m.dev.drop())...)
}
