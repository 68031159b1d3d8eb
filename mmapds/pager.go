package mmapds

import (
	"context"

	"github.com/penstock/penstock/store"
)

// Range is bytes [Offset, Offset+Bytes) of one of a dataset's files.
type Range struct {
	Path          string // of one of the files of Dataset.Files
	Offset, Bytes int64
}

// Pager fetches bytes of a dataset whose files are not complete yet: the third way to read, next to
// mapped memory and pread. The files have their full length from the start, and bytes that were not
// fetched may have any value; so every read first acquires its ranges. Package remote/mirror has a
// Pager. Any goroutine may call the methods.
type Pager interface {
	// Complete reports that all bytes are in the files, and stay there, so that nothing has to be
	// asked for any more. It costs next to nothing.
	Complete() bool

	// Stays reports whether fetched bytes stay in the files, so that views of them can be handed out.
	Stays() bool

	// Acquire fetches ranges, and keeps them until Held.Release. If it has to wait, it also requests
	// the ranges that soon returns, which will be needed next; soon may be nil.
	Acquire(ctx context.Context, need []Range, soon func() []Range) (Held, error)

	// Prefetch begins to fetch ranges, and does not wait.
	Prefetch(need []Range)

	// ReadAt fills p with bytes of a file, which are held by the caller.
	ReadAt(path string, p []byte, off int64) error

	// Distrust reports whether err, of reading bytes that were fetched, shows that they were corrupt
	// on their way, so that they are fetched again when they are asked for.
	Distrust(err error) bool
}

// Held is a set of fetched ranges that stay until Release.
type Held interface {
	// InFiles reports whether all the rows are in the files, and no row is in memory only.
	InFiles() bool

	// Again fetches the ranges again that err, from reading them, shows to be corrupt, so that they can
	// be read once more. If that does not help, or was done too often, it returns err with its context.
	Again(ctx context.Context, err error) error

	// Release ends the hold.
	Release()
}

// GenerationPager is a [Pager] of a dataset whose generations are stored elsewhere, such as in a
// bucket.
type GenerationPager interface {
	Pager

	// Home returns where the dataset is opened, without a generation.
	Home() string

	// ReadGeneration returns the manifest of a generation.
	ReadGeneration(n int) (*store.Manifest, error)
}

// pagedFile is one file of a dataset, read through its pager.
type pagedFile struct {
	pager Pager
	path  string
}

// ReadAt implements io.ReaderAt.
func (f pagedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.pager.ReadAt(f.path, p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// appendRange appends a range, or extends the last range if the new range continues it: fewer
// and larger requests are cheaper over a network.
func appendRange(list []Range, r Range) []Range {
	if n := len(list); n > 0 && list[n-1].Path == r.Path && list[n-1].Offset+list[n-1].Bytes == r.Offset {
		list[n-1].Bytes += r.Bytes
		return list
	}
	return append(list, r)
}

// ranges appends the byte ranges of rows [a, b), which exist and are stored as they are.
func (c *column) ranges(list []Range, a, b int) []Range {
	for a < b {
		e := &c.meta.Extents[c.extent(a)]
		n := min(b, int(e.First+e.Count)) - a
		list = appendRange(list, Range{e.Path, c.offsetOf(e, a), int64(n * c.size)})
		a += n
	}
	return list
}

// ranges appends the byte ranges of the chunks of n runs of rows, which exist.
func (p *packed) ranges(list []Range, n int, run func(k int) (a, b int)) []Range {
	add := func(off, bytes int64) {
		if bytes > 0 {
			list = appendRange(list, Range{p.path, off, bytes})
		}
	}
	for k := range n {
		a, b := run(k)
		p.stored(a, b, add)
	}
	return list
}

// heldRows answers for rows that are stored as they are, and that are not mapped: a pager holds them, in its memory or in files,
// or they are in more files than can be mapped. Such rows are copied: a pager may drop their bytes after Release.
type heldRows struct {
	c     *column
	bytes interface {
		ReadAt(path string, p []byte, off int64) error
		Prefetch(need []Range)
	}
}

// slice copies rows [a, b) to new memory.
func (h *heldRows) slice(a, b int) ([]byte, error) {
	if a == b {
		return nil, nil
	}
	return h.read(a, b, nil)
}

func (h *heldRows) read(a, b int, buf []byte) ([]byte, error) {
	buf = resize(buf, (b-a)*h.c.size)
	return buf, h.readTo(a, b, buf)
}

// readTo copies rows [a, b) to dst: one ReadAt for each range of a file.
func (h *heldRows) readTo(a, b int, dst []byte) error {
	for _, r := range h.c.ranges(nil, a, b) {
		if err := h.bytes.ReadAt(r.Path, dst[:r.Bytes], r.Offset); err != nil {
			return h.c.lost(a, err)
		}
		dst = dst[r.Bytes:]
	}
	return nil
}

func (h *heldRows) gather(_ context.Context, rows []int, dst []byte, arrived arrival) error {
	size := h.c.size
	for k, i := range rows {
		if err := h.readTo(i, i+1, dst[k*size:(k+1)*size]); err != nil {
			return err
		}
		if err := arrive(arrived, size, []rowSpan{{i, 1}}, dst[k*size:]); err != nil {
			return err
		}
	}
	return nil
}

func (h *heldRows) copy(_ context.Context, runs []rowSpan, dst []byte, arrived arrival) error {
	size := h.c.size
	for at, k := 0, 0; k < len(runs); k++ {
		r := runs[k]
		if err := h.readTo(r.row, r.row+r.n, dst[at:at+r.n*size]); err != nil {
			return err
		}
		if err := arrive(arrived, size, runs[k:k+1], dst[at:]); err != nil {
			return err
		}
		at += r.n * size
	}
	return nil
}

func (h *heldRows) prefetch(a, b int) error {
	h.bytes.Prefetch(h.c.ranges(nil, a, b))
	return nil
}

// warm has nothing to do: the rows were acquired, so they are in memory or in the files.
func (h *heldRows) warm(int, int) error { return nil }
