//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package loader

// lock returns why it cannot: buffers are memory of the Go heap here.
func lock([]byte) (why string) { return "memory is not locked in race builds, nor on this system" }
