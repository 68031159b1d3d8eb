package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Device is a CUDA device that this process uses, by its primary context. PyTorch, XLA and
// every program of the CUDA runtime use the same context, so that their addresses, streams
// and events can be mixed with this package's in one process. All methods may be called by
// any goroutine.
type Device struct {
	drv     *driver
	ordinal int
	handle  int32
	ctx     uintptr
	name    string
	version int32

	mu      sync.Mutex
	users   int      // what must be freed before the context is given back
	idle    [][]byte // page-locked memory of the Allocator that no Loader has
	closed  bool
	module  uintptr // of the kernels; 0 until one is asked for
	kernels map[string]uintptr
}

// Count returns the number of CUDA devices, at least 1. If the machine has no
// device, the error wraps ErrNoCUDA and states why.
func Count() (int, error) {
	_, n, err := start()
	return n, err
}

// start opens the driver and counts the devices.
func start() (*driver, int, error) {
	drv, err := load()
	if err != nil {
		return nil, 0, &noCUDAError{err}
	}
	if err := drv.call("cuInit", drv.Init(0)); err != nil {
		return nil, 0, &noCUDAError{err}
	}
	var n int32
	if err := drv.call("cuDeviceGetCount", drv.DeviceGetCount(&n)); err != nil {
		return nil, 0, &noCUDAError{err}
	}
	if n == 0 {
		return nil, 0, &noCUDAError{errors.New("the driver lists no device; see CUDA_VISIBLE_DEVICES")}
	}
	return drv, int(n), nil
}

// Open returns the device with the given ordinal, counted from 0 as in
// CUDA_VISIBLE_DEVICES. Every Open needs a Close. The error wraps ErrNoCUDA where CUDA
// cannot be used at all.
func Open(ordinal int) (*Device, error) {
	drv, n, err := start()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("cuda: there is no device %d; there are %d, from 0", ordinal, n)
	}
	d := &Device{drv: drv, ordinal: ordinal, kernels: make(map[string]uintptr)}
	if err := d.open(); err != nil {
		return nil, err
	}
	return d, nil
}

// open queries the device and retains its primary context.
func (d *Device) open() error {
	if r := d.drv.DeviceGet(&d.handle, int32(d.ordinal)); r != 0 {
		return d.failure("cuDeviceGet", r)
	}
	name := make([]byte, 128)
	if r := d.drv.DeviceGetName(&name[0], int32(len(name)-1), d.handle); r != 0 {
		return d.failure("cuDeviceGetName", r)
	}
	d.name = cString(name)
	if r := d.drv.DriverGetVersion(&d.version); r != 0 {
		return d.failure("cuDriverGetVersion", r)
	}
	if r := d.drv.DevicePrimaryCtxRetain(&d.ctx, d.handle); r != 0 {
		return d.failure("cuDevicePrimaryCtxRetain", r)
	}
	return nil
}

// Ordinal returns the number that Open was called with.
func (d *Device) Ordinal() int { return d.ordinal }

// Name returns the model's name.
func (d *Device) Name() string { return d.name }

// DriverVersion returns the newest CUDA version that the driver knows, as 1000 times its
// major and 10 times its minor number: 12040 is CUDA 12.4.
func (d *Device) DriverVersion() int { return int(d.version) }

// do makes one call in the device's context, and restores the context that the thread had
// before: the thread may be one of C's, which calls a DLPack deleter. A goroutine may be moved
// to another thread between any two lines, so the thread is locked meanwhile.
func (d *Device) do(op string, call func() Result) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r := d.drv.CtxPushCurrent(d.ctx); r != 0 {
		return d.failure("cuCtxPushCurrent, for "+op, r)
	}
	defer d.pop()
	if r := call(); r != 0 {
		return d.failure(op, r)
	}
	return nil
}

// free makes a call that returns a resource to the driver. A failed push of the context is tried
// once more, because what is not freed stays allocated until the process ends.
func (d *Device) free(op string, call func() Result) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pushed := d.drv.CtxPushCurrent(d.ctx)
	if pushed == 0 || d.drv.CtxPushCurrent(d.ctx) == 0 {
		defer d.pop()
	}
	r := call()
	if pushed != 0 {
		return d.failure("cuCtxPushCurrent, for "+op, pushed)
	}
	if r != 0 {
		return d.failure(op, r)
	}
	return nil
}

// pop restores the context that was current before CtxPushCurrent. Its result does not count:
// the call between them was made, and what it made must be kept.
func (d *Device) pop() {
	var ctx uintptr
	d.drv.CtxPopCurrent(&ctx)
}

func (d *Device) failure(op string, r Result) *Error {
	return d.drv.failure(op, d.ordinal, r)
}

// attribute returns an attribute of the device, or 0 if the driver does not know it.
func (d *Device) attribute(number int32) int32 {
	var v int32
	if d.drv.DeviceGetAttribute(&v, number, d.handle) != 0 {
		return 0
	}
	return v
}

// Synchronize waits until the device has done everything that this process gave it.
func (d *Device) Synchronize() error {
	return d.do("cuCtxSynchronize", func() Result { return d.drv.CtxSynchronize() })
}

// retain keeps the context open until the matching drop.
func (d *Device) retain() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("cuda: device %d: %w", d.ordinal, ErrClosed)
	}
	d.users++
	return nil
}

// drop ends one retain.
func (d *Device) drop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
	return d.releaseIfIdleLocked()
}

// Close releases the device. Close everything that was made with the device first: otherwise Close
// returns an error, and the context stays open until the last of these is closed, since freeing
// memory needs the context. Close of a closed Device returns ErrClosed.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return fmt.Errorf("cuda: device %d: %w", d.ordinal, ErrClosed)
	}
	d.closed = true
	idle := d.idle
	d.idle = nil
	left := d.users - len(idle)
	d.users++ // until the idle memory is freed
	d.mu.Unlock()
	var errs []error
	for _, b := range idle {
		errs = append(errs, d.unpin(b))
	}
	errs = append(errs, d.drop())
	if left > 0 {
		errs = append(errs, fmt.Errorf("cuda: device %d: close: %d Prefetchers, Streams or buffers of it are still open; "+
			"close them, and the Loader whose Allocator it gave, first", d.ordinal, left))
	}
	return errors.Join(errs...)
}

// releaseIfIdleLocked releases the context once the device is closed and nothing uses it.
func (d *Device) releaseIfIdleLocked() error {
	if !d.closed || d.users > 0 {
		return nil
	}
	err := d.unloadKernelsLocked()
	if r := d.drv.DevicePrimaryCtxRelease(d.handle); r != 0 {
		err = errors.Join(err, d.failure("cuDevicePrimaryCtxRelease", r))
	}
	return err
}

// cString returns the bytes before the first zero.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
