package loadbench

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resident returns the share of the pages of mapped memory that are in memory, by mincore(2); -1 if
// the system does not say.
func resident(b []byte) float64 {
	if len(b) == 0 {
		return -1
	}
	// The pages around b belong to its mapping, as mappings consist of whole pages, and
	// mincore writes to state alone.
	page := uintptr(os.Getpagesize())
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	from := at &^ (page - 1)
	n := at + uintptr(len(b)) - from
	state := make([]byte, (n+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, from, n,
		uintptr(unsafe.Pointer(unsafe.SliceData(state)))); errno != 0 {
		return -1
	}
	there := 0
	for _, s := range state {
		there += int(s & 1)
	}
	return float64(there) / float64(len(state))
}
