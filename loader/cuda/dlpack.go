package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/penstock/penstock/tensor"
)

// DLTensor is the part of DLPack's structures (dlpack.h) that says where a tensor is.
type DLTensor struct {
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
}

// DLManagedTensor is the structure of DLPack before version 1.0 by which libraries hand each
// other tensors: what a Python capsule named "dltensor" holds, and torch.from_dlpack takes.
// It is laid out as in C, and neither it nor what it points to moves until it is deleted.
type DLManagedTensor struct {
	DLTensor
	ManagerCtx uintptr
	Deleter    uintptr // void (*)(DLManagedTensor *)
}

// DLManagedTensorVersioned is the same since version 1.0: what a capsule named
// "dltensor_versioned" holds, which __dlpack__ returns to a caller whose max_version is at
// least that.
type DLManagedTensorVersioned struct {
	Major, Minor uint32
	ManagerCtx   uintptr
	Deleter      uintptr // void (*)(DLManagedTensorVersioned *)
	Flags        uint64  // none: the tensor is writable and not a copy
	DLTensor
}

const (
	dlCUDA  = 2
	dlMajor = 1 // the version of the versioned structure; 1.0 has all that is used here
)

// capsule is the Go state of a managed tensor: the slot that it holds, and the pin of the memory
// that C reads.
type capsule struct {
	s      *slot
	stream Stream
	pin    runtime.Pinner
}

// dlBody is the memory that C sees, with everything that t points to. It is one allocation, so that
// one pin keeps all of it in place.
type dlBody[T DLManagedTensor | DLManagedTensorVersioned] struct {
	t    T
	dims dlDims
}

type dlDims [2 * tensor.MaxRank]int64 // shape, then strides

// capsules holds the capsules by address until they are deleted: only C refers to them, which the
// garbage collector does not see.
var capsules sync.Map // uintptr -> *capsule

// deleter is the C function that deletes a capsule. One function serves all capsules, because a
// callback can never be freed.
var deleter = sync.OnceValue(func() uintptr {
	return newCallback(deleteAt)
})

// DLPack returns a field for another library in this process, which works on it on that
// stream: the stream has been made to wait for the batch. The field stays valid beyond the
// loop body, as by Keep, until the library calls the Deleter, or Delete is called if no
// library ever got it; what the stream has then is still waited for. The batch itself needs
// its own Done as ever. At most Options.Prefetch batches of a device can be held: one more is
// an error, which wraps ErrKept.
func (b Batch) DLPack(name string, stream Stream) (*DLManagedTensor, error) {
	return pack(b, name, stream, func(t DLTensor) DLManagedTensor {
		return DLManagedTensor{DLTensor: t, Deleter: deleter()}
	})
}

// DLPackVersioned is DLPack for a library that reads version 1.0 of DLPack.
func (b Batch) DLPackVersioned(name string, stream Stream) (*DLManagedTensorVersioned, error) {
	return pack(b, name, stream, func(t DLTensor) DLManagedTensorVersioned {
		return DLManagedTensorVersioned{Major: dlMajor, DLTensor: t, Deleter: deleter()}
	})
}

// pack holds a slot for a field, which manage makes into a managed tensor.
func pack[T DLManagedTensor | DLManagedTensorVersioned](b Batch, name string, stream Stream, manage func(DLTensor) T) (
	*T, error) {
	s := b.touch()
	if err := s.dev.valid(stream); err != nil {
		return nil, err
	}
	if err := s.retain(); err != nil {
		return nil, err
	}
	if err := s.dev.order(uintptr(stream), s.copied); err != nil {
		return nil, err
	}
	t := s.field(name)
	body := new(dlBody[T])
	body.t = manage(body.dims.describe(t))
	c := &capsule{s: s, stream: stream}
	s.mu.Lock()
	s.holds++
	s.mu.Unlock()
	c.pin.Pin(body)
	capsules.Store(uintptr(unsafe.Pointer(body)), c)
	return &body.t, nil
}

// describe returns t in DLPack's form, whose shape and strides point into d.
func (d *dlDims) describe(t Tensor) DLTensor {
	n := len(t.Shape)
	step := int64(1)
	for i := n - 1; i >= 0; i-- {
		d[i], d[n+i] = int64(t.Shape[i]), step
		step *= int64(t.Shape[i])
	}
	return DLTensor{
		Data: t.Ptr, DeviceType: dlCUDA, DeviceID: int32(t.Device), NDim: int32(n),
		Code: dlCode(t.DType), Bits: uint8(8 * t.DType.Size()), Lanes: 1,
		Shape: &d[0], Strides: &d[n],
	}
}

// dlCode returns the DLDataTypeCode of a type.
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

// Delete ends the tensor, as its Deleter does. Only the first of both has an effect. Delete must
// not be called after the Deleter, when the memory may be gone.
func (t *DLManagedTensor) Delete() { deleteAt(uintptr(unsafe.Pointer(t))) }

// Delete calls the tensor's deleter, as DLManagedTensor.Delete does.
func (t *DLManagedTensorVersioned) Delete() { deleteAt(uintptr(unsafe.Pointer(t))) }

func deleteAt(p uintptr) {
	if c, ok := capsules.LoadAndDelete(p); ok {
		c.(*capsule).delete()
	}
}

// delete ends the capsule's hold on its slot. It may run on a thread of C, and has no caller to
// return an error to, so that an error is kept for the loop or Close.
func (c *capsule) delete() {
	if err := c.s.end(c.stream, c.s.dev.valid(c.stream)); err != nil {
		c.s.p.fail(err)
	}
	c.pin.Unpin()
}
