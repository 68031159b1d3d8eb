package cuda

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/penstock/penstock/tensor"
)

// IPC is a field of a batch for another process on the same host, which maps it with
// Device.NewImports, or penstock.cuda.Imports in Python. It can be written as JSON: send it
// by whatever the two processes have.
type IPC struct {
	Handle  [64]byte     `json:"handle"`  // CUipcMemHandle of the slot's memory, the same for each batch there
	Offset  uint64       `json:"offset"`  // of the tensor, in bytes after the address that cuIpcOpenMemHandle returns
	DType   tensor.DType `json:"dtype"`   //
	Shape   tensor.Shape `json:"shape"`   // the first axis is the batch's
	Device  int          `json:"device"`  // its ordinal in the giving process
	UUID    string       `json:"uuid"`    // of the device, the same in each process
	Process string       `json:"process"` // a random word for the giving process
}

// thisProcess is IPC.Process of what is given here. The process's number would not do, as
// those of two containers may be the same.
var thisProcess = sync.OnceValue(rand.Text)

// IPC waits until the batch is on the device, and returns a field for another process. That
// process says when its work on the field is done, in a way that the two agree on, and only
// then comes the batch's Done; a process that has ended is done. The Prefetcher must not be
// closed before the other process has closed its Imports, or has ended.
//
// There are Prefetch+1 handles a device in all, which come round: the other process maps each
// once. Memory that was given away is kept until the Prefetcher is closed, also where a
// field of variable length has outgrown it. The driver shares memory in blocks of 2 MiB, which
// is why a slot has whole blocks: another process sees nothing else.
func (b Batch) IPC(name string) (IPC, error) {
	s := b.touch()
	// Drivers of CUDA 11.4 to 11.7 have IPC, but do not know the attribute.
	if v, known := s.dev.attribute(attrIPC); known && v == 0 {
		return IPC{}, fmt.Errorf("cuda: device %d: %w", s.dev.ordinal, errNoIPC)
	}
	if err := s.settle(s.copied); err != nil {
		return IPC{}, err
	}
	t := s.field(name)
	if s.ipc == nil {
		h := new(ipcHandle)
		err := s.dev.do("cuIpcGetMemHandle", func() Result { return s.dev.drv.IpcGetMemHandle(h, s.mem) })
		if err != nil {
			return IPC{}, err
		}
		s.ipc = h
	}
	return IPC{s.ipc.bytes, t.Ptr - s.mem, t.DType, t.Shape, t.Device, s.dev.uuid, thisProcess()}, nil
}

var errNoIPC = errors.New("it cannot share memory between processes (CUDA IPC): load in the process that trains")
