package mmap

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/penstock/penstock/internal/vfs"
)

// Place says which bytes of a file some mapped memory is.
type Place struct {
	Offset int64
	Bytes  int64
	of     *mapped
}

// PlaceOf returns where b is, which may be memory of any Mapping after Publish. It returns false if b is elsewhere,
// not in one file, or empty.
func PlaceOf(b []byte) (Place, bool) {
	live.mu.RLock()
	defer live.mu.RUnlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	i, is := slices.BinarySearchFunc(live.list, at, func(m *Mapping, at uintptr) int {
		switch start := m.address(); {
		case at < start:
			return 1
		case at-start >= uintptr(len(m.data)):
			return -1
		}
		return 0
	})
	if !is || len(b) == 0 {
		return Place{}, false
	}
	m := live.list[i]
	from := int(at - m.address())
	for k := range m.files {
		f := &m.files[k]
		if n := int(f.end - f.start); from >= f.from && from-f.from < n {
			return Place{f.start + int64(from-f.from), int64(len(b)), f}, len(b) <= n-(from-f.from)
		}
	}
	return Place{}, false
}

// SameFile reports whether p and q are in one file of one Mapping.
func (p Place) SameFile(q Place) bool { return p.of == q.of }

// Path returns the path of the file.
func (p Place) Path() string { return p.of.path }

// Open opens the file, if it is still at its path.
func (p Place) Open() (*os.File, error) {
	f, err := vfs.OpenRegular(p.of.path) // wherever links lead by now: it is compared
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, p.of.info) {
		err = fmt.Errorf("%s: another file is there now", p.of.path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// live are the published mappings, in the order of their addresses.
var live struct {
	mu   sync.RWMutex
	list []*Mapping
}

func (m *Mapping) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.data))) }

func compareAddresses(m, other *Mapping) int {
	switch {
	case m.address() < other.address():
		return -1
	case m.address() > other.address():
		return 1
	}
	return 0
}

// Publish lets PlaceOf find the memory until Unmap, so that other processes can map the same bytes of the files. The
// files must not change, also not after Unmap.
func (m *Mapping) Publish() {
	live.mu.Lock()
	defer live.mu.Unlock()
	i, _ := slices.BinarySearchFunc(live.list, m, compareAddresses)
	live.list = slices.Insert(live.list, i, m)
}

// withdraw ends Publish.
func (m *Mapping) withdraw() {
	live.mu.Lock()
	defer live.mu.Unlock()
	if i, is := slices.BinarySearchFunc(live.list, m, compareAddresses); is {
		live.list = slices.Delete(live.list, i, i+1)
	}
}
