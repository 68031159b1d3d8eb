//go:build (darwin || freebsd || netbsd || openbsd) && !race

package loader

import "runtime"

// hugePages asks for nothing: the system decides by itself.
func hugePages([]byte) (why string) {
	return "large pages are asked for on linux only, not on " + runtime.GOOS
}
