package mmapds

import (
	"context"
	"runtime/debug"
	"slices"
)

// answer reads rows of one column, which exist. Where there is a pager, the caller has acquired the
// rows from it. Three types implement it: [mapped] for rows in files, which are mapped and
// populated or read by pread; [packed] for rows that must be decoded; and [heldRows] for rows that
// a pager holds in memory, or that are in too many files to map them. [verified] wraps any of them, so that checksums are compared in one
// place. Any goroutine may call the methods.
type answer interface {
	// slice returns rows [a, b) as one piece: memory of the mapping, which it does not touch, or new memory.
	slice(a, b int) ([]byte, error)

	// read returns rows [a, b) in memory: in the mapping, in buf, or in new memory.
	read(a, b int, buf []byte) ([]byte, error)

	// gather copies rows to dst, one after the other. Rows that do not exist are an error. It calls arrived, if
	// that is not nil, with each row that is in dst, from any goroutine.
	gather(ctx context.Context, rows []int, dst []byte, arrived arrival) error

	// copy copies runs of rows to dst, one after the other, and calls arrived with each as gather does.
	copy(ctx context.Context, runs []rowSpan, dst []byte, arrived arrival) error

	// prefetch starts to read rows [a, b) from disk, and does not wait.
	prefetch(a, b int) error

	// warm reads rows [a, b) from disk, where they are not in memory yet.
	warm(a, b int) error
}

// arrival is a callback for rows that are in memory now; row is the number of the first.
// Verification uses it to check rows while they are in the CPU's cache.
type arrival func(row int, data []byte) error

// rowSpan is n rows of a column from a row on.
type rowSpan struct{ row, n int }

// arrive calls arrived for each run of rows. data has the rows of all runs, one run after the
// other, and size is the bytes of a row.
func arrive(arrived arrival, size int, runs []rowSpan, data []byte) error {
	if arrived == nil {
		return nil
	}
	for _, r := range runs {
		n := r.n * size
		if err := arrived(r.row, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// resize returns a slice of n bytes, in the memory of buf if its capacity suffices.
func resize(buf []byte, n int) []byte { return slices.Grow(buf[:0], n)[:n] }

// faulter explains faults in mapped memory.
type faulter interface {
	// fault returns why a read at addr failed; nil if addr is not in memory that it knows.
	fault(addr uintptr) error
}

// catch is deferred around reads of mapped memory, together with SetPanicOnFault(true). A fault at
// an address that f knows becomes an error: the file was truncated under the mapping, which must
// not end the process. All other panics pass through.
func catch(err *error, before bool, f faulter) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	if fault, ok := r.(interface{ Addr() uintptr }); ok {
		if lost := f.fault(fault.Addr()); lost != nil {
			*err = lost
			return
		}
	}
	panic(r)
}
