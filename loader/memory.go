package loader

// Memory is where the buffers of batches come from: page-locked memory, memory that other
// processes share, or a framework's own. With a Memory, every batch is copied there and none
// is a view of the Source.
type Memory interface {
	// Alloc returns n > 0 bytes that start on a page. It is called once, when the first
	// batch is made.
	Alloc(n int) ([]byte, error)

	// Free gives back what Alloc returned, when the Loader is closed and no batch is kept.
	Free(b []byte) error
}

// anonymous is memory of the process.
type anonymous struct{}

func (anonymous) Alloc(n int) ([]byte, error) { return newMemory(n) }
func (anonymous) Free(b []byte) error         { return freeMemory(b) }
