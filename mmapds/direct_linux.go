package mmapds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readDirect makes reads of f go past the page cache. The flag belongs to the open file, so that
// direct reads use a file handle of their own.
func readDirect(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) {
		err = fmt.Errorf("%w: %w", errNoDirect, err)
	}
	return err
}

// directQueue reads by Linux's asynchronous I/O: io_submit hands many reads to the kernel, and
// io_getevents waits for some of them. Asynchronous I/O is truly asynchronous only past the page
// cache. io_uring is more general, but containers commonly forbid it.
type directQueue struct {
	ctx     uintptr
	reads   [directDepth]directRead
	idle    []int   // numbers of the reads that are not under way
	pending []*iocb // reads that are prepared and not submitted yet
	events  []ioEvent
	made    int // buffers allocated since the queue was borrowed
}

// directRead is one read of consecutive rows.
type directRead struct {
	iocb
	file   *os.File
	row    int
	dst    []byte // where the rows belong
	into   []byte // what the kernel fills: dst, or an aligned buffer
	skip   int    // bytes in the buffer before the rows
	buffer []byte // kept for later reads at this place
}

// iocb is struct iocb of linux/aio_abi.h, and ioEvent is its struct io_event. The kernel reads and
// writes them, so their layout is fixed.
type iocb struct {
	data   uint64
	_      uint64 // key and flags
	opcode uint16
	_      int16 // priority
	fd     uint32
	buf    uint64
	bytes  uint64
	offset int64
	_      [2]uint64 // reserved, flags and event file
}

type ioEvent struct {
	data, object   uint64
	result, second int64
}

const opPread = 0 // IOCB_CMD_PREAD

// newDirectQueue asks the kernel for a context of directDepth reads. Linux limits how many reads
// all contexts may have together (fs.aio-max-nr), and containers may forbid the call: then there
// are no direct reads.
func newDirectQueue() (*directQueue, error) {
	q := &directQueue{events: make([]ioEvent, directDepth)}
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, directDepth, uintptr(unsafe.Pointer(&q.ctx)), 0); e != 0 {
		return nil, fmt.Errorf("%w: io_setup: %w", errNoDirect, e)
	}
	for i := range q.reads {
		q.idle = append(q.idle, i)
	}
	return q, nil
}

// close frees the kernel's context. No read may be under way.
func (q *directQueue) close() { _, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, q.ctx, 0, 0) }

// gatherDirect reads rows past the page cache, with the contract of gather. It returns errNoDirect
// if the file system refuses. After an error it still waits for all reads under way: the kernel
// writes to dst until they are done.
func (p *preader) gatherDirect(ctx context.Context, rows, list []int, dst []byte, arrived arrival) (err error) {
	q, err := p.handles.direct.borrow()
	if err != nil {
		return err
	}
	defer p.handles.direct.giveBack(q)
	underWay := 0
	for len(list) > 0 && err == nil || underWay > 0 {
		q.pending = q.pending[:0]
		for most := p.depth(); len(list) > 0 && err == nil && underWay+len(q.pending) < most; {
			if err = ctx.Err(); err == nil {
				n := p.runOf(rows, list)
				err = q.prepare(p, rows[list[0]], dst[list[0]*p.c.size:(list[0]+n)*p.c.size])
				list = list[n:]
			}
		}
		n, failed := q.submit()
		if underWay += n; err == nil {
			err = failed
		}
		if underWay == 0 {
			break
		}
		done := q.wait((underWay + 1) / 2)
		underWay -= len(done)
		for i := range done {
			if failed := q.complete(p, &done[i], arrived); err == nil {
				err = failed
			}
		}
	}
	return err
}

// depth returns how many reads one call has under way.
func (p *preader) depth() int { return max(2, min(directDepth, directBytes/max(1, p.c.size))) }

// runOf returns how many rows, from the first of list on, are consecutive both in the file and in
// memory, and so make one read.
func (p *preader) runOf(rows, list []int) int {
	first, at := rows[list[0]], list[0]
	e := &p.c.meta.Extents[p.c.extent(first)]
	most := min(len(list), int(e.First+e.Count)-first, max(1, directRun/p.c.size))
	n := 1
	for n < most && list[n] == at+n && rows[list[n]] == first+n {
		n++
	}
	return n
}

// prepare adds a read of as many rows as dst holds. If place, length or address is not aligned, it
// reads whole blocks around the rows into an aligned buffer. The buffer belongs to the read's place
// in the queue and is reused.
func (q *directQueue) prepare(p *preader, row int, dst []byte) error {
	e := &p.c.meta.Extents[p.c.extent(row)]
	f, err := p.handles.file(handle{e.Folder, e.Path, true})
	if err != nil {
		return p.failed(row, err)
	}
	i := q.idle[len(q.idle)-1]
	q.idle = q.idle[:len(q.idle)-1]
	r, off := &q.reads[i], p.c.offsetOf(e, row)
	r.file, r.row, r.dst, r.into, r.skip = f, row, dst, dst, int(off%directBlock)
	if (addressOf(dst)|uintptr(off)|uintptr(len(dst)))%directBlock != 0 {
		n := (r.skip + len(dst) + directBlock - 1) &^ (directBlock - 1)
		if len(r.buffer) < n {
			q.made++
			b := make([]byte, n+directBlock)
			r.buffer = b[int(-addressOf(b)%directBlock):]
		}
		r.into = r.buffer[:n]
	}
	r.iocb = iocb{
		data: uint64(i), opcode: opPread, fd: uint32(f.Fd()),
		buf: uint64(addressOf(r.into)), bytes: uint64(len(r.into)), offset: off - int64(r.skip),
	}
	q.pending = append(q.pending, &r.iocb)
	return nil
}

// submit hands the prepared reads to the kernel and returns how many reads the kernel took: all
// reads, unless there is an error. Reads that were not taken become idle again.
func (q *directQueue) submit() (n int, err error) {
	for n < len(q.pending) {
		took, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, q.ctx, uintptr(len(q.pending)-n),
			uintptr(unsafe.Pointer(&q.pending[n])))
		if e != 0 && e != unix.EINTR {
			for _, r := range q.pending[n:] {
				q.idle = append(q.idle, int(r.data))
			}
			return n, fmt.Errorf("io_submit: %w", refusal(e))
		}
		if e == 0 {
			n += int(took)
		}
	}
	return n, nil
}

// refusal marks an errno as errNoDirect if it means that this system has no direct reads, or
// that all its queues for direct reads are in use.
func refusal(e syscall.Errno) error {
	if e == unix.EINVAL || e == unix.ENOSYS || e == unix.EOPNOTSUPP || e == unix.EAGAIN {
		return fmt.Errorf("%w: %w", errNoDirect, e)
	}
	return e
}

// wait waits until at least some number of reads are done, and returns the events of all reads that
// are done.
func (q *directQueue) wait(least int) []ioEvent {
	for {
		n, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, q.ctx, uintptr(least), uintptr(len(q.events)),
			uintptr(unsafe.Pointer(unsafe.SliceData(q.events))), 0, 0)
		if e == 0 {
			return q.events[:n]
		}
		if e != unix.EINTR {
			panic(fmt.Sprintf("mmapds: io_getevents: %v", e)) // the kernel writes to memory for which nobody waits
		}
	}
}

// complete hands over the rows of a finished read. A short read is repeated through the page cache,
// which tells a file that ended from a read that was cut short.
func (q *directQueue) complete(p *preader, done *ioEvent, arrived arrival) error {
	r := &q.reads[done.data]
	defer func() {
		q.idle = append(q.idle, int(done.data))
		r.dst, r.into = nil, nil
	}()
	if done.result < 0 {
		return p.failed(r.row, &os.PathError{Op: "read", Path: r.file.Name(), Err: refusal(syscall.Errno(-done.result))})
	}
	if int(done.result) < r.skip+len(r.dst) { // the file ends there, or not all came
		if err := p.readRows(r.row, r.dst); err != nil {
			return err
		}
	} else if unsafe.SliceData(r.into) != unsafe.SliceData(r.dst) {
		copy(r.dst, r.into[r.skip:])
	}
	if arrived == nil {
		return nil
	}
	return arrived(r.row, r.dst)
}
