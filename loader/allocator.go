package loader

// Allocator is where the buffers of batches come from: page-locked memory, memory that other
// processes share, or a framework's own. With an Allocator, every batch is copied there and none
// is a view of the Source, unless it has the method AllowsViews() bool and that returns true. If it also has
// AllowsView(view []byte) bool, that is asked for each view of a field, by any goroutine, and a field
// is copied where it returns false.
//
// An Allocator that is page-locked says so by Pinned() bool, and where it should be and is not, why
// by Why() string: Stats has both.
type Allocator interface {
	// Alloc returns n > 0 bytes that start on a page. It is called once for all buffers, when
	// the first batch is made; for the buffer of each worker that the Loader adds, where an error
	// leaves it at the workers it has; and by any goroutine for the rows of a field of variable
	// length whenever a batch has more rows than its buffer holds.
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

// allowsView returns what is asked for each view; nil if all views of the Source will do.
func allowsView(m Allocator) func(view []byte) bool {
	if v, ok := m.(interface{ AllowsView(view []byte) bool }); ok {
		return v.AllowsView
	}
	return nil
}
