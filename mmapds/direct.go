package mmapds

import (
	"errors"
	"io"
	"os"
	"sync"
)

// directBlock is the alignment of the offset, length and address of a direct read: no disk or file
// system asks for more.
const directBlock = 4096

// direct reads past the page cache, into buffers that are aligned for it unless the memory
// where the bytes shall be happens to be. The buffers are kept for the next reads.
type direct struct {
	mu   sync.Mutex
	free [][]byte
	n    int   // buffers
	why  error // why this file system cannot do it, once that is known
}

// errNoDirect says that this system or file system has no direct reads.
var errNoDirect = errors.New("O_DIRECT is not possible here")

// read reads len(dst) bytes at an offset of f, a file opened by openDirect. It returns
// errNoDirect if the file system refuses.
func (d *direct) read(f *os.File, dst []byte, off int64) error {
	if (addressOf(dst)|uintptr(off)|uintptr(len(dst)))%directBlock == 0 {
		return preadDirect(f, dst, off, len(dst))
	}
	from, end := off&^(directBlock-1), (off+int64(len(dst))+directBlock-1)&^(directBlock-1)
	buf := d.borrow(int(end - from))
	defer d.giveBack(buf)
	skip := int(off - from)
	if err := preadDirect(f, buf[:end-from], from, skip+len(dst)); err != nil {
		return err
	}
	copy(dst, buf[skip:])
	return nil
}

// preadDirect reads at least need bytes of aligned memory, unless the file ends before.
func preadDirect(f *os.File, b []byte, off int64, need int) error {
	for need > 0 {
		n, err := pread(f, b, off)
		if err != nil {
			return err
		}
		if n >= need {
			return nil
		}
		if n == 0 || n%directBlock != 0 {
			return io.ErrUnexpectedEOF
		}
		b, off, need = b[n:], off+int64(n), need-n
	}
	return nil
}

// borrow returns an aligned buffer of n bytes or more.
func (d *direct) borrow(n int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := len(d.free) - 1; last >= 0 && len(d.free[last]) >= n {
		b := d.free[last]
		d.free = d.free[:last]
		return b
	}
	d.n++
	b := make([]byte, n+2*directBlock) // a record more or less aligned fits too
	skip := int(-addressOf(b) % directBlock)
	return b[skip : skip+n+directBlock]
}

func (d *direct) giveBack(b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, b)
}

// refused notes why there are no direct reads, and asked says whether they were asked for.
func (d *direct) refused(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = err
}

func (d *direct) asked() (buffers int, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n, d.why
}
