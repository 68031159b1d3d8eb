//go:build (darwin || freebsd || netbsd || openbsd) && !race

package loader

// hugePages does nothing: the system decides by itself.
func hugePages([]byte) {}
