package objects

// Slice is a Set of images that are in memory.
type Slice []Image

// Len implements Set.
func (s Slice) Len() int { return len(s) }

// Image implements Set.
func (s Slice) Image(i int) Image { return s[i] }

// Close implements Set.
func (s Slice) Close() error { return nil }
