package mmapds

import (
	"errors"
	"sync"
)

// directBlock is the alignment of the offset, length and address of a direct read: no disk or file
// system asks for more.
const directBlock = 4096

// Limits of the reads that one Gather has under way past the page cache: enough for any disk, in a
// bounded amount of memory.
const (
	directDepth = 64
	directBytes = 8 << 20
)

// directRun is the size up to which consecutive rows are one read. Larger reads gain nothing from
// being joined.
const directRun = 256 << 10

// errNoDirect says that this system or file system has no direct reads.
var errNoDirect = errors.New("O_DIRECT is not possible here")

// direct reads past the page cache. Each call borrows a queue, from which one thread keeps the disk
// busy: a thread per read takes two to four times the CPU. Queues and their buffers are kept for
// later calls. mu guards the list only; a borrowed queue belongs to its caller.
type direct struct {
	mu      sync.Mutex
	free    []*directQueue
	buffers int   // aligned buffers that were allocated so far
	why     error // why this system has no direct reads; nil as long as they work
}

// refused records why the system has no direct reads. After that all reads go through the page
// cache.
func (d *direct) refused(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = err
}

// asked returns how many buffers were allocated, and the reason that refused recorded.
func (d *direct) asked() (buffers int, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buffers, d.why
}

// borrow returns a queue for one call, which the call gives back when none of its reads is under
// way.
func (d *direct) borrow() (*directQueue, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := len(d.free) - 1; last >= 0 {
		q := d.free[last]
		d.free = d.free[:last]
		return q, nil
	}
	return newDirectQueue()
}

// giveBack keeps a borrowed queue, and its buffers, for later calls.
func (d *direct) giveBack(q *directQueue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buffers += q.made
	q.made = 0
	d.free = append(d.free, q)
}

// close ends the queues. Close of the dataset has waited for all readers by then.
func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.free {
		q.close()
	}
	d.free = nil
}
