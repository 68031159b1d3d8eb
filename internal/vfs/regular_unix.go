//go:build unix

package vfs

import "golang.org/x/sys/unix"

// How files and folders are opened: a named pipe or a device that stands in their place does not let the program wait.
const (
	openFile   = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK
	openFolder = openFile | unix.O_DIRECTORY
)

// retry calls f until no signal interrupts it.
func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}
