//go:build !unix

package lease

import "os"

const (
	shared = iota
	exclusive
)

// lock: Windows does not remove files that are open, which does as well; other systems have no such locks.
func lock(*os.File, int) error { return nil }

func wait(*os.File) error { return nil }
