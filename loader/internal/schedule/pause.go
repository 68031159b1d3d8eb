//go:build (amd64 || arm64) && !purego

package schedule

// pause executes the CPU's instruction for loops that wait, n > 0 times: it leaves the
// core's units to a thread that shares them.
//
//go:noescape
func pause(n uint32)
