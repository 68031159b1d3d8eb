package mmapds

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/store"
)

// inFlight is how many preads a dataset has under way, for all that call Gather: that many keep
// storage busy. Each is a thread that copies in the kernel, where more of them only keep
// others from a processor.
const inFlight = 32

// handles are files that are open for pread.
type handles struct {
	mu     sync.Mutex
	open   map[handle]*os.File
	places chan struct{} // of the preads under way
}

// reads returns the places of preads: who has sent to it may read, and receives from it then.
func (h *handles) reads() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places == nil {
		h.places = make(chan struct{}, inFlight)
	}
	return h.places
}

type handle struct {
	path   string
	direct bool
}

// file opens a file, once in either way.
func (h *handles) file(path string, direct bool) (*os.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := handle{path, direct}
	if f := h.open[key]; f != nil {
		return f, nil
	}
	open := os.Open
	if direct {
		open = openDirect
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	mmap.Random(f)
	if h.open == nil {
		h.open = make(map[handle]*os.File)
	}
	h.open[key] = f
	return f, nil
}

func (h *handles) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, f := range h.open {
		errs = append(errs, f.Close())
	}
	clear(h.open)
	return errors.Join(errs...)
}

// preads reads rows to where they belong in dst: list has their positions in indices. It
// returns the error of one that failed.
func (d *arrays) preads(ctx context.Context, c *column, indices, list []int, dst []byte) error {
	var next atomic.Int64
	var all sync.WaitGroup
	var once sync.Once
	var failed error
	places := d.handles.reads()
	for range min(inFlight, len(list)) {
		all.Go(func() {
			for n := next.Add(1); n <= int64(len(list)); n = next.Add(1) {
				k := list[n-1]
				if err := d.preadIn(ctx, places, c, indices[k], dst[k*c.size:(k+1)*c.size]); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(len(list)))
					return
				}
			}
		})
	}
	all.Wait()
	c.counts.read.Add(int64(len(list)))
	return failed
}

// preadIn reads a row once it has a place.
func (d *arrays) preadIn(ctx context.Context, places chan struct{}, c *column, row int, dst []byte) error {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.pread(c, row, dst)
}

// pread reads a row, and checks it where that is due.
func (d *arrays) pread(c *column, row int, dst []byte) error {
	k := c.extent(row)
	e := &c.meta.Extents[k]
	if err := d.readAt(c, e.Path, dst, e.Offset+int64(row-int(e.First))*int64(c.size)); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = store.ErrCorrupt
		}
		return d.lost(c, row, err)
	}
	if c.sums == nil || e.SumsPath == "" {
		return nil
	}
	if c.block > 1 { // the row is a part of what its checksum covers
		s, _ := c.find(row)
		return d.check(c, s, row, row+1, c.checks)
	}
	sums, err := d.sums(c, k)
	if n := row - int(e.First); err == nil && sums.due(n, c.checks) {
		return d.compare(c, k, n, row, dst)
	}
	return err
}

// readAt reads from a file of a column, past the page cache if that was asked for and can be.
func (d *arrays) readAt(c *column, path string, dst []byte, off int64) error {
	if c.readsDirect() {
		f, err := d.handles.file(path, true)
		if err == nil {
			err = c.direct.read(f, dst, off)
		}
		if !errors.Is(err, errNoDirect) {
			return err
		}
		c.direct.refused(err)
	}
	f, err := d.handles.file(path, false)
	if err == nil {
		_, err = f.ReadAt(dst, off)
	}
	return err
}
