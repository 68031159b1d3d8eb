package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/penstock/penstock/tensor"
)

// DLManagedTensor is the structure of DLPack (dlpack.h, before version 1.0) by which
// libraries hand each other tensors: what a Python capsule named "dltensor" holds, and
// torch.from_dlpack takes. It is laid out as in C, and neither it nor what it points to
// moves until it is deleted.
type DLManagedTensor struct {
	Data       uint64 // address on the device
	DeviceType int32  // 2: CUDA
	DeviceID   int32  // ordinal
	NDim       int32
	Code       uint8 // 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
	Bits       uint8
	Lanes      uint16
	Shape      *int64 // NDim lengths
	Strides    *int64 // NDim steps, in elements
	ByteOffset uint64
	ManagerCtx uintptr
	Deleter    uintptr // void (*)(DLManagedTensor *)
}

const dlCUDA = 2

// capsule is what stands behind a DLManagedTensor.
type capsule struct {
	body   *dlBody
	s      *slot
	stream Stream
	pin    runtime.Pinner
}

// dlBody is what C sees, and all that t points to: pinned as one.
type dlBody struct {
	t    DLManagedTensor
	dims [2 * tensor.MaxRank]int64 // shape, then strides
}

// capsules holds them by address until they are deleted, as C alone refers to them.
var capsules sync.Map // uintptr -> *capsule

// deleter is the C function of all capsules. One serves for all, as it is never freed.
var deleter = sync.OnceValue(func() uintptr {
	return newCallback(func(p uintptr) {
		if c, ok := capsules.LoadAndDelete(p); ok {
			c.(*capsule).delete()
		}
	})
})

// DLPack returns a field for another library in this process, which works on it on that
// stream: the stream has been made to wait for the batch. The field stays valid beyond the
// loop body, as by Keep, until the library calls the Deleter, or Delete is called if no
// library ever got it; what the stream has then is still waited for. The batch itself needs
// its own Done as ever. At most Options.Ahead batches of a device can be held: one more is
// an error, which wraps ErrKept.
func (b Batch) DLPack(name string, stream Stream) (*DLManagedTensor, error) {
	s := b.touch()
	if err := s.retain(); err != nil {
		return nil, err
	}
	if err := s.dev.order(uintptr(stream), s.copied); err != nil {
		return nil, err
	}
	t, _ := s.field(name)
	c := &capsule{body: describe(t), s: s, stream: stream}
	s.mu.Lock()
	s.holds++
	s.mu.Unlock()
	c.pin.Pin(c.body)
	capsules.Store(uintptr(unsafe.Pointer(c.body)), c)
	return &c.body.t, nil
}

// describe returns t in DLPack's terms.
func describe(t Tensor) *dlBody {
	b := new(dlBody)
	n := len(t.Shape)
	step := int64(1)
	for i := n - 1; i >= 0; i-- {
		b.dims[i], b.dims[n+i] = int64(t.Shape[i]), step
		step *= int64(t.Shape[i])
	}
	b.t = DLManagedTensor{
		Data: t.Ptr, DeviceType: dlCUDA, DeviceID: int32(t.Device), NDim: int32(n),
		Code: dlCode(t.DType), Bits: uint8(8 * t.DType.Size()), Lanes: 1,
		Shape: &b.dims[0], Strides: &b.dims[n], Deleter: deleter(),
	}
	return b
}

// dlCode returns a DLDataTypeCode.
func dlCode(dt tensor.DType) uint8 {
	switch dt {
	case tensor.Bool:
		return 6
	case tensor.BFloat16:
		return 4
	case tensor.Float16, tensor.Float32, tensor.Float64:
		return 2
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		return 1
	}
	return 0
}

// Delete ends the tensor, as its Deleter does. Only the first of both has an effect, and
// Delete must not be called after the Deleter.
func (t *DLManagedTensor) Delete() {
	if c, ok := capsules.LoadAndDelete(uintptr(unsafe.Pointer(t))); ok {
		c.(*capsule).delete()
	}
}

// delete ends the capsule's hold on its slot.
func (c *capsule) delete() {
	if err := c.s.end(c.stream); err != nil {
		c.s.p.fail(err)
	}
	c.pin.Unpin()
}
