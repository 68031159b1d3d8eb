//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"runtime"
	"testing"

	"github.com/penstock/penstock/tensor"
)

// A DLPack deleter runs on a thread of another library, whose context it leaves current.
func TestContextIsRestored(t *testing.T) {
	useFake(t, setting{devices: 2})
	d, err := Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		m := dlpack(t, b, "images", r.streams[0])
		runtime.LockOSThread()
		if r := d.drv.CtxPushCurrent(d.ctx); r != 0 {
			t.Fatal(r)
		}
		fakeDriver.delete(m)
		var ctx uintptr
		if r := d.drv.CtxPopCurrent(&ctx); r != 0 || ctx != d.ctx {
			t.Errorf("the thread's context is %#x after the deleter, result %d; it was %#x", ctx, r, d.ctx)
		}
		runtime.UnlockOSThread()
		if err := b.Done(r.streams[0]); err != nil {
			t.Fatal(err)
		}
		break
	}
}

// The default stream of a thread is refused wherever a stream orders something.
func TestThreadStreamIsRefused(t *testing.T) {
	useFake(t, setting{})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(2); !errors.Is(err, ErrThreadStream) {
			t.Errorf("Wait: %v", err)
		}
		if _, err := b.DLPack("images", 2); !errors.Is(err, ErrThreadStream) {
			t.Errorf("DLPack: %v", err)
		}
		if err := r.devices[0].SynchronizeStream(2); !errors.Is(err, ErrThreadStream) {
			t.Errorf("SynchronizeStream: %v", err)
		}
		if err := b.Done(2); !errors.Is(err, ErrThreadStream) {
			t.Errorf("Done: %v", err)
		}
		break
	}
}

// A driver that has CUDA IPC, but no attribute of it, shares memory.
func TestIPCOfOldDrivers(t *testing.T) {
	useFake(t, setting{oldIPC: true})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.IPC("images"); err != nil {
			t.Error(err)
		}
		break
	}
}

// Slots have whole blocks of the driver, so that another process maps nothing but the slot.
func TestSlotsAreWholeBlocks(t *testing.T) {
	defer func(n uint64) { block = n }(block)
	block = 2 << 20
	useFake(t, setting{})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Done(r.streams[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.pf.Stats().DeviceBytes; n == 0 || n%int64(block) != 0 {
		t.Errorf("%d bytes on the device, not whole blocks of %d", n, block)
	}
}
