package cuda

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoCUDA is wrapped by the error of Open and Count where there is no CUDA device to use:
// no driver, one that is too old, no device, or a system for which this package has no
// binding. Training code goes on without: batches then stay in host memory.
var ErrNoCUDA = errors.New("no CUDA device can be used")

// ErrClosed is wrapped by errors of a Prefetcher or Device that is closed.
var ErrClosed = errors.New("closed")

// ErrBusy is wrapped by the error of an epoch that starts while another of the same
// Prefetcher is still being iterated.
var ErrBusy = errors.New("another epoch of this Prefetcher is still being iterated; leave that loop first")

// ErrKept is wrapped by the error of Keep and DLPack when Options.Prefetch batches of a device
// are held beyond their loop bodies.
var ErrKept = errors.New("as many batches are held as Options.Prefetch allows; end one by Done, or raise Prefetch")

// Result is a CUresult: what a function of the driver returned. 0 is success.
type Result int32

// Results that have a meaning here.
const (
	outOfMemory   Result = 2
	stubLibrary   Result = 34
	noDevice      Result = 100
	invalidDevice Result = 101
)

// Error is a failed call of the driver.
type Error struct {
	Op     string // function, for example "cuMemHostAlloc", and what it was for
	Device int    // its ordinal; -1 where the call is about none
	Result Result
	Name   string // of the Result, for example "CUDA_ERROR_OUT_OF_MEMORY"; "" if the driver has none
}

// Error names the call, the result and, if there is one, the remedy.
func (e *Error) Error() string {
	where := ""
	if e.Device >= 0 {
		where = fmt.Sprintf("device %d: ", e.Device)
	}
	text := fmt.Sprintf("cuda: %s%s: error %d", where, e.Op, e.Result)
	if e.Name != "" {
		text = fmt.Sprintf("cuda: %s%s: %s (%d)", where, e.Op, e.Name, e.Result)
	}
	if hint := hints[e.Result]; hint != "" {
		text += "; " + hint
	}
	return text
}

// hints say what to do about a Result.
var hints = map[Result]string{
	outOfMemory:   "lower Prefetch or the batch size",
	stubLibrary:   "this is the toolkit's stub of libcuda.so.1, not the driver: take its folder out of LD_LIBRARY_PATH",
	noDevice:      "see whether nvidia-smi lists one, and what CUDA_VISIBLE_DEVICES says",
	invalidDevice: "Count says how many devices there are",
	700: "a kernel or copy of this process touched memory that it must not; the context is lost, " +
		"restart the process",
	802: "the system is not ready: wait for nvidia-fabricmanager",
	803: "driver library and kernel module have different versions: reboot, or update the container's driver",
	804: "the driver is older than the forward-compatibility package allows",
	999: "see dmesg for what the driver says",
}

// noCUDAError is the error of a system without CUDA.
type noCUDAError struct{ cause error }

func (e *noCUDAError) Error() string {
	return "cuda: " + ErrNoCUDA.Error() + ": " + strings.TrimPrefix(e.cause.Error(), "cuda: ")
}

func (e *noCUDAError) Unwrap() []error { return []error{ErrNoCUDA, e.cause} }
