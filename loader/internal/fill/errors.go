package fill

import (
	"fmt"
	"runtime/debug"
)

// Error says which record of which field failed.
type Error struct {
	Field  int   // number of the field
	Record int   // -1 if no single record is to blame
	Alone  bool  // the record was read alone, so that the text of Err need not say where it is
	Final  bool  // no other record can take its place
	Err    error // what the Source or the function said
}

// Error returns the text of Err; the loader adds batch, record and field.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// numbered is an error whose text names the failed record, such as a loader.RecordError. This package cannot import
// package loader, which imports it.
type numbered interface {
	error
	Record() int
}

// guard turns panics of the Source, the Sampler and the caller into errors.
type guard struct {
	fault Fault // nil if the Source does not explain faults
	plain bool  // panics that are not faults pass through
}

// catch is deferred around code of the Source, the Sampler and the caller. A fault in mapped memory
// of the Source becomes the error that the Source has for that address: a file that was truncated
// under a mapping must fail one batch, not the process. Every other panic becomes an error with its
// stack, or passes through if the guard is plain.
func (g *guard) catch(err *error) { g.handle(recover(), err) }

// handle is catch for a value that recover has returned already; nil means that there was no panic.
// A runtime error of a fault has the method Addr, which is how a fault is told from other panics.
func (g *guard) handle(p any, err *error) {
	if p == nil {
		return
	}
	if fault, ok := p.(interface{ Addr() uintptr }); ok && g.fault != nil {
		if lost := g.fault.Fault(fault.Addr()); lost != nil {
			*err = lost
			return
		}
	}
	if g.plain {
		panic(p)
	}
	*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
}
