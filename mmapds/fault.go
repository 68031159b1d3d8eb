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
func (d *Dataset) catch(err *error, before bool) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	fault, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	for i := range d.columns {
		c := &d.columns[i]
		for k := range c.segments {
			s := &c.segments[k]
			if at := fault.Addr() - addressOf(s.data); at < uintptr(len(s.data)) {
				*err = d.lost(c, s.first+int(at)/c.size, store.ErrCorrupt)
				return
			}
		}
	}
	panic(r)
}

// addressOf returns where b lies, to compare with and never to go back from.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
