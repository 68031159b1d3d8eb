//go:build !race

package loader

import "golang.org/x/sys/unix"

// hugePages asks for large pages, so that a buffer is not taken from the system in thousands of
// faults, and a core keeps track of it while it writes here and there. It is a hint: where there
// are none, pages are ordinary ones.
func hugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
