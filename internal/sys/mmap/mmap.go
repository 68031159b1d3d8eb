// Package mmap maps files read-only. A whole file is mapped by github.com/edsrzf/mmap-go;
// on Linux the pieces of several files can be mapped side by side, so that they are one
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
)

// ErrUnsupported says that this system cannot do it, and what follows is up to the caller.
var ErrUnsupported = errors.ErrUnsupported

// Mapping is mapped memory.
type Mapping struct {
	data  []byte
	unmap func() error
}

// File maps a file, which must not be empty.
func File(path string) (*Mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	m, err := mmapgo.Map(f, mmapgo.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("mmap %s: %w", path, err)
	}
	return &Mapping{data: m, unmap: m.Unmap}, nil
}

// Part is a piece of a file: Bytes bytes from Offset on.
type Part struct {
	Path   string
	Offset int64
	Bytes  int64
}

// Bytes returns the mapped memory. It must not be written to.
func (m *Mapping) Bytes() []byte { return m.data }

// Unmap gives the memory back: a later use of it is a fault or, worse, reads whatever was
// mapped there since. In builds that check invariants the addresses stay reserved without
// access, so that it is always a fault.
func (m *Mapping) Unmap() error {
	data := m.data
	if data == nil {
		return nil
	}
	m.data = nil
	if protected(data) {
		return nil
	}
	return m.unmap()
}
