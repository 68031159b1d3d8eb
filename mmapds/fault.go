package mmapds

import (
	"runtime/debug"
	"unsafe"

	"github.com/penstock/penstock/store"
)

// Guard calls f. If f touches mapped memory that the file no longer has, it is stopped
// there and Guard returns an error that names file, field and record; everything else,
// other panics too, passes through. It guards the calling goroutine only.
func (d *Dataset) Guard(f func() error) (err error) {
	defer d.catch(&err, debug.SetPanicOnFault(true))
	return f()
}

// catch is deferred around reads of mapped memory, with the result of SetPanicOnFault(true):
// it turns a fault at one of our addresses into an error.
func (d *arrays) catch(err *error, before bool) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	if fault, ok := r.(interface{ Addr() uintptr }); ok {
		if lost := d.fault(fault.Addr()); lost != nil {
			*err = lost
			return
		}
	}
	panic(r)
}

// Fault returns why a read at addr failed, if addr is in mapped memory of the Dataset: a
// [ReadError] that names file, field and record. It returns nil for every other address. The
// caller has recovered from the fault, as [runtime/debug.SetPanicOnFault] lets it.
func (d *Dataset) Fault(addr uintptr) error { return d.fault(addr) }

func (d *arrays) fault(addr uintptr) error {
	for i := range d.columns {
		c := &d.columns[i]
		for k := range c.segments {
			s := &c.segments[k]
			if at := addr - addressOf(s.data); at < uintptr(len(s.data)) {
				return d.lost(c, s.first+int(at)/c.size, store.ErrCorrupt)
			}
		}
	}
	return nil
}

// addressOf returns where b is, to compare with and never to go back from.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
