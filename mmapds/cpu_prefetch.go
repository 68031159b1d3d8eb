package mmapds

import "github.com/penstock/penstock/internal/kernel"

// How many bytes are asked for from memory before they are needed, and the most of one row: of a
// long one the processor asks for the rest by itself once it has seen its beginning.
const (
	prefetchAhead = 12 << 10
	prefetchRow   = 1 << 10
	longRow       = 4 << 10
)

// prefetchDistance returns how many rows in advance a row is asked for.
func (c *column) prefetchDistance() int { return max(1, prefetchAhead/max(1, c.size)) }

// prefix returns how many bytes of a row are asked for.
func (c *column) prefix() int {
	if c.size >= longRow {
		return prefetchRow
	}
	return c.size
}

// prefetchFirst begins to load the first rows of a list to the cache, and does not wait.
func (c *column) prefetchFirst(rows []int) {
	part := c.prefix()
	for _, i := range rows[:min(len(rows), c.prefetchDistance())] {
		c.load(i, part)
	}
}

// load begins to load a row to the cache, if it exists and is mapped.
func (c *column) load(i, part int) {
	if uint(i) < uint(c.len()) && c.packed == nil {
		kernel.Prefetch(c.row(i)[:part])
	}
}
