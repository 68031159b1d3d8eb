package mmapds

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// inFlight is how many preads a dataset has under way, for all calls of Gather together: that many
// preads keep storage busy. Each pread occupies a thread that copies in the kernel; more threads
// would only take CPUs from other work.
const inFlight = 32

// handles are the files of a dataset that are open for pread. mu guards the map; a file is opened
// at its first pread, as most datasets never need one.
type handles struct {
	mu     sync.Mutex
	open   map[handle]*os.File
	places chan struct{} // a semaphore: one element for each pread under way
	direct direct
}

// reads returns the semaphore of the preads: a goroutine sends before it reads, and receives
// afterwards.
func (h *handles) reads() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places == nil {
		h.places = make(chan struct{}, inFlight)
	}
	return h.places
}

// handle names an open file: the same file has another handle for direct reads, as O_DIRECT belongs
// to the open file.
type handle struct {
	folder, path string // see vfs.OpenIn
	direct       bool
}

// file returns an open file, which it opens once for cached and once for direct reads.
func (h *handles) file(key handle) (*os.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.open[key]; f != nil {
		return f, nil
	}
	f, err := vfs.OpenIn(key.folder, key.path)
	if err == nil && key.direct {
		if err = readDirect(f); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	vfs.Random(f)
	if h.open == nil {
		h.open = make(map[handle]*os.File)
	}
	h.open[key] = f
	return f, nil
}

// close closes all files. No read may be under way.
func (h *handles) close() error {
	h.direct.close()
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, f := range h.open {
		errs = append(errs, f.Close())
	}
	clear(h.open)
	return errors.Join(errs...)
}

// preader reads rows of one column by pread.
type preader struct {
	c        *column
	handles  *handles // of the dataset
	mode     readMode
	exceeds  bool         // the dataset is much larger than memory
	received atomic.Int64 // rows that were read
}

// isDirect reports whether preads go past the page cache.
func (p *preader) isDirect() bool {
	if p.mode != modeDirect && (p.mode != modeAuto || !p.exceeds) {
		return false
	}
	_, refusal := p.handles.direct.asked()
	return refusal == nil
}

// least returns how large a record must be to be read by pread rather than mapped. Past the page
// cache smaller records qualify, because a mapped page would not stay in memory for the
// neighboring records.
func (p *preader) least() int {
	if p.isDirect() {
		return directBlock
	}
	return coldBytes
}

// gather reads rows to their places in dst; list has their positions in rows. If several reads
// fail, one of their errors is returned. A failed read stops the others from starting, and gather
// waits for those under way, since they write to dst.
func (p *preader) gather(ctx context.Context, rows, list []int, dst []byte, arrived arrival) error {
	p.received.Add(int64(len(list)))
	if p.isDirect() {
		err := p.gatherDirect(ctx, rows, list, dst, arrived)
		if !errors.Is(err, errNoDirect) {
			return err
		}
		p.handles.direct.refused(err)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	var once sync.Once
	var failed error
	places, size := p.handles.reads(), p.c.size
	for range min(inFlight, len(list)) {
		all.Go(func() {
			for n := next.Add(1); n <= int64(len(list)); n = next.Add(1) {
				k := list[n-1]
				if err := p.readIn(ctx, places, rows[k], dst[k*size:(k+1)*size], arrived); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(len(list)))
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// readIn reads a row once the semaphore has a place.
func (p *preader) readIn(ctx context.Context, places chan struct{}, row int, dst []byte, arrived arrival) error {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.readRows(row, dst); err != nil || arrived == nil {
		return err
	}
	return arrived(row, dst)
}

// readRows reads consecutive rows of a file, as many as dst holds.
func (p *preader) readRows(row int, dst []byte) error {
	e := &p.c.meta.Extents[p.c.extent(row)]
	f, err := p.handles.file(handle{e.Folder, e.Path, false})
	n := 0
	if err == nil {
		n, err = f.ReadAt(dst, p.c.offsetOf(e, row))
	}
	return p.failed(row+n/max(1, p.c.size), err)
}

// failed returns the error of a row that could not be read. A file that ends too early is corrupt.
func (p *preader) failed(row int, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = store.ErrCorrupt
	}
	return p.c.lost(row, err)
}
