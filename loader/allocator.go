package loader

// Allocator provides the buffers of batches: page-locked memory, memory that other processes share,
// or a framework's own memory. With an Allocator every batch is copied into its buffers, and no
// batch is a view of the Source: the caller wants the bytes in this memory. An Allocator with the
// method AllowsViews() bool that returns true permits views. If the Allocator also has
// AllowsView(view []byte) bool, the loader asks it for each view of a field, from any goroutine,
// and copies the field if the answer is false.
//
// A page-locked Allocator reports so by Pinned() bool. If its memory should be page-locked and is
// not, Why() string says why. Stats has both.
type Allocator interface {
	// Alloc returns n > 0 bytes that start on a page. The Loader calls it once for the buffers of
	// all batches, when the first batch is made. It calls it again for the buffer of each worker
	// that it adds later; after an error it goes on with the workers that it has. And any goroutine
	// calls it for the rows of a field of variable length, whenever a batch has more rows than its
	// buffer holds.
	Alloc(n int) ([]byte, error)

	// Free gives back what Alloc returned: when the Loader is closed and no batch is kept, or when
	// larger memory was allocated in its place; by any goroutine.
	Free(b []byte) error
}

// allowsViews reports whether batches may be views of the Source.
func allowsViews(m Allocator) bool {
	v, ok := m.(interface{ AllowsViews() bool })
	return m == nil || ok && v.AllowsViews()
}

// allowsView returns the Allocator's check of single views, or nil if all views are permitted.
func allowsView(m Allocator) func(view []byte) bool {
	if v, ok := m.(interface{ AllowsView(view []byte) bool }); ok {
		return v.AllowsView
	}
	return nil
}
