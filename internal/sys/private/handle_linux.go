package private

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Exchange swaps what has two names, in one step.
func Exchange(from *os.Root, name string, to *os.Root, newName string) error {
	return between(from, name, to, newName, func(a, b int) error {
		return unix.Renameat2(a, name, b, newName, unix.RENAME_EXCHANGE)
	})
}

// Through returns a path that leads to an open folder even if the folder was renamed; "" if the system has no
// such path.
func Through(folder *os.File) string {
	path := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	own, err := folder.Stat()
	if err != nil {
		return ""
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(own, there) {
		return "" // /proc is not mounted
	}
	return path
}
