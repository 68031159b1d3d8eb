package cuda

import "unsafe"

// driver is the part of the CUDA driver API that this package calls, by the names that the
// library exports. Handles (contexts, streams, events, modules, functions) are uintptr, device
// addresses uint64. All functions may be called by any thread; the functions from
// CtxSynchronize on work in the context that is current on the calling thread, see Device.do.
type driver struct {
	Init                   func(flags uint32) Result                          `symbol:"cuInit"`
	DriverGetVersion       func(version *int32) Result                        `symbol:"cuDriverGetVersion"`
	GetErrorName           func(r Result, name **byte) Result                 `symbol:"cuGetErrorName"`
	DeviceGetCount         func(count *int32) Result                          `symbol:"cuDeviceGetCount"`
	DeviceGet              func(device *int32, ordinal int32) Result          `symbol:"cuDeviceGet"`
	DeviceGetName          func(name *byte, size, device int32) Result        `symbol:"cuDeviceGetName"`
	DeviceGetAttribute     func(value *int32, attribute, device int32) Result `symbol:"cuDeviceGetAttribute"`
	DevicePrimaryCtxRetain func(ctx *uintptr,
		device int32) Result `symbol:"cuDevicePrimaryCtxRetain"`
	DevicePrimaryCtxRelease func(device int32) Result                                      `symbol:"cuDevicePrimaryCtxRelease_v2"`
	CtxPushCurrent          func(ctx uintptr) Result                                       `symbol:"cuCtxPushCurrent_v2"`
	CtxPopCurrent           func(ctx *uintptr) Result                                      `symbol:"cuCtxPopCurrent_v2"`
	CtxSynchronize          func() Result                                                  `symbol:"cuCtxSynchronize"`
	MemHostAlloc            func(p *unsafe.Pointer, n uintptr, flags uint32) Result        `symbol:"cuMemHostAlloc"`
	MemFreeHost             func(p unsafe.Pointer) Result                                  `symbol:"cuMemFreeHost"`
	MemHostRegister         func(p unsafe.Pointer, n uintptr, flags uint32) Result         `symbol:"cuMemHostRegister_v2"`
	MemHostUnregister       func(p unsafe.Pointer) Result                                  `symbol:"cuMemHostUnregister"`
	MemAlloc                func(p *uint64, n uintptr) Result                              `symbol:"cuMemAlloc_v2"`
	MemFree                 func(p uint64) Result                                          `symbol:"cuMemFree_v2"`
	MemcpyHtoDAsync         func(dst uint64, src unsafe.Pointer, n, stream uintptr) Result `symbol:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoHAsync         func(dst unsafe.Pointer, src uint64, n, stream uintptr) Result `symbol:"cuMemcpyDtoHAsync_v2"`
	StreamCreate            func(stream *uintptr, flags uint32) Result                     `symbol:"cuStreamCreate"`
	StreamDestroy           func(stream uintptr) Result                                    `symbol:"cuStreamDestroy_v2"`
	StreamSynchronize       func(stream uintptr) Result                                    `symbol:"cuStreamSynchronize"`
	StreamWaitEvent         func(stream, event uintptr, flags uint32) Result               `symbol:"cuStreamWaitEvent"`
	StreamIsCapturing       func(stream uintptr, status *int32) Result                     `symbol:"cuStreamIsCapturing"`
	EventCreate             func(event *uintptr, flags uint32) Result                      `symbol:"cuEventCreate"`
	EventDestroy            func(event uintptr) Result                                     `symbol:"cuEventDestroy_v2"`
	EventRecord             func(event, stream uintptr) Result                             `symbol:"cuEventRecord"`
	EventSynchronize        func(event uintptr) Result                                     `symbol:"cuEventSynchronize"`
	ModuleLoadData          func(module *uintptr, image *byte) Result                      `symbol:"cuModuleLoadData"`
	ModuleUnload            func(module uintptr) Result                                    `symbol:"cuModuleUnload"`
	ModuleGetFunction       func(function *uintptr, module uintptr, name string) Result    `symbol:"cuModuleGetFunction"`
	LaunchKernel            func(function uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32,
		stream uintptr, params *unsafe.Pointer, extra uintptr) Result `symbol:"cuLaunchKernel"`
}

// Flags and attributes of the driver API, by their numbers in cuda.h.
const (
	hostAllocPortable    = 1 // pinned for the contexts of all devices
	hostRegisterPortable = 1
	hostRegisterReadOnly = 8
	streamNonBlocking    = 1 // no order against the legacy default stream
	eventBlockingSync    = 1 // who waits sleeps
	eventDisableTiming   = 2

	perThreadStream = 2 // CU_STREAM_PER_THREAD

	attrHostRegister         = 99
	attrReadOnlyHostRegister = 113
)

// call describes the failure of a call that needs no context.
func (d *driver) call(op string, r Result) error {
	if r == 0 {
		return nil
	}
	return d.failure(op, -1, r)
}

func (d *driver) failure(op string, device int, r Result) *Error {
	return &Error{Op: op, Device: device, Result: r, Name: d.name(r)}
}

// name returns the driver's name of a result. The text belongs to the driver, so that it is copied.
func (d *driver) name(r Result) string {
	var p *byte
	if d.GetErrorName(r, &p) != 0 || p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
