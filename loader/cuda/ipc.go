package cuda

import "github.com/penstock/penstock/tensor"

// IPC is a field of a batch as another process on the same host can map it, by
// cuIpcOpenMemHandle: the tensor begins Offset bytes behind the address that gives. It can
// be written as JSON.
type IPC struct {
	Handle [64]byte     `json:"handle"` // CUipcMemHandle of the slot's memory, the same for each batch there
	Offset uint64       `json:"offset"`
	DType  tensor.DType `json:"dtype"`
	Shape  tensor.Shape `json:"shape"` // the first axis is the batch's
	Device int          `json:"device"`
}

// IPC waits until the batch is on the device, and returns a field for another process. That
// process must say when it has finished, on a way of the caller's; Done comes after that.
// It should keep what it mapped: there are Ahead+1 handles a device in all, and mapping
// takes long.
func (b Batch) IPC(name string) (IPC, error) {
	s := b.touch()
	if err := s.settle(s.copied); err != nil {
		return IPC{}, err
	}
	t, _ := s.field(name)
	if s.ipc == nil {
		h := new([64]byte)
		err := s.dev.do("cuIpcGetMemHandle", func() Result { return s.dev.drv.IpcGetMemHandle(h, s.mem) })
		if err != nil {
			return IPC{}, err
		}
		s.ipc = h
	}
	return IPC{*s.ipc, t.Ptr - s.mem, t.DType, t.Shape, t.Device}, nil
}
