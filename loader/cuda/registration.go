package cuda

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Direct names fields that the devices read from the dataset's own mapping, without a copy
// by the CPU. For that the mapping is page-locked as a whole: all of the field is read from
// storage, and stays in memory until the Prefetcher is closed. It pays for datasets that fit
// in memory with records of 128 KiB and more, or in the dataset's order; where records are
// smaller and scattered, batches are gathered as without Direct.
//
// The Loader should leave the fields of Direct out of its batches (loader.Options.Fields);
// its Transforms do not apply to them.
type Direct struct {
	Source loader.Source // of the Loader; *mmapds.Dataset is one
	Fields []string
}

// minRun is the size from which a separate transfer is worth its setup, which takes about as long
// as gathering that many bytes.
const minRun = 128 << 10

// mapping is one field of a Direct, with the memory that was page-locked for it.
type mapping struct {
	spec   tensor.Spec
	pieces []piece // by first; none if they are not page-locked
	device *Device // that page-locked them
	bytes  int     // of all pages
	why    string  // not page-locked
}

// piece is a run of consecutive records that are mapped as one: the records of a split, or records that were appended
// together. Shards of one split are mapped one after another.
type piece struct {
	first int
	base  []byte // the records
	pages []byte // of base, whole
}

// maxPieces limits the mappings of a field that are page-locked one by one.
const maxPieces = 1 << 10

// open page-locks a field, or records why it cannot.
func (m *mapping) open(src loader.Source, devices []*Device) {
	pieces, err := piecesOf(src, m.spec)
	if err == nil {
		err = m.lock(pieces, devices)
	}
	if err != nil {
		m.why = err.Error()
	}
}

// piecesOf returns all records of a field, in as few pieces as there are mappings. The end of a
// piece is found by a binary search.
func piecesOf(src loader.Source, spec tensor.Spec) ([]piece, error) {
	n := src.Len()
	contiguous := func(int, int) bool { return true }
	if c, ok := src.(interface{ Contiguous(string, int, int) bool }); ok {
		contiguous = func(a, b int) bool { return c.Contiguous(spec.Name, a, b) }
	}
	var pieces []piece
	for first := 0; first < n; {
		if !contiguous(first, first+1) || len(pieces) == maxPieces {
			return nil, fmt.Errorf("its records are not mapped in at most %d pieces", maxPieces)
		}
		count := 1 + sort.Search(n-first-1, func(i int) bool { return !contiguous(first, first+i+2) })
		v, err := src.Slice(spec.Name, first, first+count)
		if err == nil && len(v.Bytes()) != count*spec.RecordBytes() {
			err = fmt.Errorf("the Source returned %d bytes for %d records", len(v.Bytes()), count)
		}
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{first: first, base: v.Bytes(), pages: wholePages(v.Bytes())})
		first += count
	}
	if n == 0 {
		return nil, errors.New("it has no records")
	}
	return pieces, nil
}

// lock page-locks pieces for all devices. A read-only mapping can be registered only with
// READ_ONLY, which not all devices support. A private mapping must not be registered: the system
// would first copy the file into memory of the process.
func (m *mapping) lock(pieces []piece, devices []*Device) error {
	for _, d := range devices {
		if d.attribute(attrHostRegister) == 0 {
			return fmt.Errorf("device %d cannot register memory of the process", d.ordinal)
		}
		if d.attribute(attrReadOnlyHostRegister) == 0 {
			return fmt.Errorf("device %d cannot register memory that can only be read", d.ordinal)
		}
	}
	for _, p := range pieces {
		if err := shared(p.base); err != nil {
			return err
		}
	}
	if err := devices[0].retain(); err != nil {
		return err
	}
	m.device = devices[0]
	for _, p := range pieces {
		if err := m.device.register(p.pages); err != nil {
			_ = m.close() // the error that counts is why it was refused
			m.bytes = 0
			return err
		}
		m.pieces = append(m.pieces, p)
		m.bytes += len(p.pages)
	}
	return nil
}

func (d *Device) register(pages []byte) error {
	err := d.do(fmt.Sprintf("cuMemHostRegister of %d bytes", len(pages)), func() Result {
		return d.drv.MemHostRegister(unsafe.Pointer(unsafe.SliceData(pages)), uintptr(len(pages)),
			hostRegisterPortable|hostRegisterReadOnly)
	})
	if err == nil {
		locked.add(pages)
	}
	return err
}

// close unlocks the memory. No copy from it may be under way.
func (m *mapping) close() error {
	if m.device == nil {
		return nil
	}
	d := m.device
	m.device = nil
	var errs []error
	for _, p := range m.pieces {
		locked.remove(p.pages)
		errs = append(errs, d.free("cuMemHostUnregister", func() Result {
			return d.drv.MemHostUnregister(unsafe.Pointer(unsafe.SliceData(p.pages)))
		}))
	}
	m.pieces = nil
	return errors.Join(append(errs, d.drop())...)
}

// runs calls f for each stretch of a batch's records that is consecutive in memory; src is the
// records from place at of the batch on.
func (m *mapping) runs(indices []int, f func(at int, src []byte) error) error {
	size := m.spec.RecordBytes()
	return runs(indices, func(at, first, n int) error {
		for n > 0 {
			i := sort.Search(len(m.pieces), func(i int) bool { return m.pieces[i].first > first }) - 1
			src := m.pieces[i].base[(first-m.pieces[i].first)*size:]
			here := min(n, len(src)/max(1, size))
			if err := f(at, src[:here*size]); err != nil {
				return err
			}
			at, first, n = at+here, first+here, n-here
		}
		return nil
	})
}

// wholePages returns the pages that b touches. A mapping consists of whole pages, so that the added
// bytes belong to the same mapping.
func wholePages(b []byte) []byte {
	page := uintptr(os.Getpagesize())
	p := unsafe.Pointer(unsafe.SliceData(b))
	before := uintptr(p) % page
	n := (before + uintptr(len(b)) + page - 1) &^ (page - 1)
	return unsafe.Slice((*byte)(unsafe.Add(p, -int(before))), n)
}

// shared returns an error if b lies in a private mapping of a file, according to /proc/self/maps:
// to register a private mapping, the driver would copy the file into memory.
func shared(b []byte) error {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("it is not known whether the mapping is shared: %w", err)
	}
	m := rangeOf(b)
	for line := range strings.Lines(string(text)) {
		start, end, private, ok := parseMap(line)
		if ok && private && uint64(m.start) < end && start < uint64(m.end) {
			return errors.New("the mapping is private: registering it would copy the file into memory")
		}
	}
	return nil
}

// parseMap reads a line of /proc/self/maps: its range, and whether it is a private mapping
// of a file.
//
//	7f1e2c000000-7f1e2c021000 r--s 00001000 08:01 5242 /data/images-00000.npy
func parseMap(line string) (start, end uint64, private, ok bool) {
	f := strings.Fields(line)
	if len(f) < 5 || len(f[1]) != 4 {
		return 0, 0, false, false
	}
	from, to, _ := strings.Cut(f[0], "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	return start, end, f[1][3] == 'p' && f[4] != "0", err1 == nil && err2 == nil
}

// runs calls f for each stretch of consecutive record numbers: n records from place at of the batch
// on, the first of which is record first.
func runs(indices []int, f func(at, first, n int) error) error {
	for at := 0; at < len(indices); {
		n := 1
		for at+n < len(indices) && indices[at+n] == indices[at]+n {
			n++
		}
		if err := f(at, indices[at], n); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// countRuns returns the number of stretches of consecutive record numbers.
func countRuns(indices []int) int {
	n := 0
	_ = runs(indices, func(int, int, int) error { n++; return nil }) // never fails
	return n
}
