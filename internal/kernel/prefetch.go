package kernel

// Prefetch begins to load the memory of b to the caches, and does not wait for it. It has no other
// effect, and cannot fault.
func Prefetch(b []byte) {
	if len(b) > 0 {
		prefetch(b)
	}
}
