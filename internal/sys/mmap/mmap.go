// Package mmap maps files: read-only, or as memory that processes share ([Shared]). A whole file is mapped by
// github.com/edsrzf/mmap-go; on Linux the pieces of several files can be mapped side by side, so that they are one
// slice. Advice and population go to the kernel directly.
//
// It does not manage lifetimes: see package mmapds. Touching mapped bytes of a file that
// became shorter is a fault.
package mmap

import (
	"errors"
	"fmt"
	"os"

	mmapgo "github.com/edsrzf/mmap-go"

	"github.com/penstock/penstock/internal/vfs"
)

// ErrUnsupported says that this system lacks the function; the caller decides what to do instead.
var ErrUnsupported = errors.ErrUnsupported

// Mapping is mapped memory.
type Mapping struct {
	data  []byte
	unmap func() error
	files []mapped
}

// mapped is a file of a Mapping. It is closed: a dataset may have more files than a process
// may have descriptors.
type mapped struct {
	path  string
	info  os.FileInfo // which file that was, as its path may lead to another one by now
	from  int         // where its bytes begin in the Mapping
	start int64       // which of its bytes is the first there
	end   int64       // and where the last one ends
}

// File maps a file of a folder, as [vfs.OpenIn] opens it. It must not be empty.
func File(folder, path string) (*Mapping, error) {
	f, err := vfs.OpenIn(folder, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := mmapgo.Map(f, mmapgo.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("mmap %s: %w", path, err)
	}
	return &Mapping{data: m, unmap: m.Unmap, files: []mapped{{path, info, 0, 0, int64(len(m))}}}, nil
}

// Lost returns the first of the bytes [from, end) of the Mapping that its file does not have any more, because
// it was truncated: a read of such a byte is a fault or, up to the end of its page, returns zero. It costs a
// system call for each of the files. A file that is not at its path any more counts as not truncated.
func (m *Mapping) Lost(from, end int) (at int, lost bool) {
	for i, f := range m.files {
		if f.from >= end || i+1 < len(m.files) && m.files[i+1].from <= from {
			continue
		}
		now, err := os.Stat(f.path)
		if err != nil || !os.SameFile(now, f.info) {
			continue
		}
		if at := max(from, f.from+int(max(0, now.Size()-f.start))); now.Size() < f.end && at < end {
			return at, true
		}
	}
	return 0, false
}

// Part is a piece of a file: Bytes bytes from Offset on.
type Part struct {
	Folder string // see vfs.OpenIn
	Path   string
	Offset int64
	Bytes  int64
}

// Bytes returns the mapped memory. It must not be written to.
func (m *Mapping) Bytes() []byte { return m.data }

// Unmap gives the memory back: a later use of it is a fault or, worse, reads whatever was
// mapped there since. In builds that check invariants the addresses stay reserved without
// access, so that a later use is always a fault.
func (m *Mapping) Unmap() error {
	data := m.data
	if data == nil {
		return nil
	}
	m.withdraw()
	m.data = nil
	if protected(data) {
		return nil
	}
	return m.unmap()
}
