package mmapds_test

import "runtime/debug"

// faults reports whether f touches memory that is not there.
func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	f()
	return false
}
