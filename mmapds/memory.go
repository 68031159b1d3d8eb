package mmapds

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/store"
)

// memory is a column as mapped memory: one segment where extents could be mapped side by side,
// otherwise one per extent. It remembers which pages were brought in, so that reads of warm pages
// make no system call. All state that changes is atomic: Gather is called by many goroutines, and
// all of them would wait for a lock here.
type memory struct {
	c        *column
	size     int          // bytes of a row
	segments []segment    // none of them is empty
	reported bool         // the system reports which of the files' pages are in memory
	looked   atomic.Int64 // when look sampled pages last, in ns since began
	evicted  atomic.Int64 // how often look found that the kernel had taken pages back
	inVain   atomic.Int64 // how many looks of adopts in a row found pages missing, with those that it spared itself
	scarce   atomic.Int64 // until when pages count as not staying in memory, in ns since began
}

// segment is rows that are consecutive in memory. data is part of the mapping of, which the Dataset
// owns and unmaps in Close.
type segment struct {
	first int    // number of the first row
	data  []byte // whole rows
	from  int    // the byte of the mapping at which data begins
	of    *mmap.Mapping
	warm  pageSet // pages of data that were brought in
}

// parts returns the extents as the parts of a mapping.
func (m *memory) parts(extents []layout.Extent) []mmap.Part {
	parts := make([]mmap.Part, len(extents))
	for i, e := range extents {
		parts[i] = mmap.Part{Folder: e.Folder, Path: e.Path, Offset: e.Offset, Bytes: e.Count * int64(m.size)}
	}
	return parts
}

// add appends a segment: n bytes of the mapping of, from byte from on, whose first row is first.
func (m *memory) add(first int, of *mmap.Mapping, from, n int) {
	data := of.Bytes()[from : from+n : from+n]
	m.segments = append(m.segments, segment{first: first, data: data, from: from, of: of, warm: newPageSet(n)})
}

// full reports whether all pages were brought in.
func (m *memory) full() bool { return len(m.segments) == 1 && m.segments[0].warm.full() }

// bytes returns the total size of the rows.
func (m *memory) bytes() (n int64) {
	for i := range m.segments {
		n += int64(len(m.segments[i].data))
	}
	return n
}

// find returns the segment that holds row i, and the row's offset there. The row must exist.
func (m *memory) find(i int) (s *segment, at int) {
	low, high := 0, len(m.segments)
	for low < high-1 {
		if mid := (low + high) / 2; m.segments[mid].first <= i {
			low = mid
		} else {
			high = mid
		}
	}
	s = &m.segments[low]
	return s, (i - s.first) * m.size
}

// row returns the memory of row i. The row must exist.
func (m *memory) row(i int) []byte {
	s, at := m.find(i)
	return s.data[at : at+m.size]
}

// run returns the memory of rows [a, b), or nil if they are not one piece. The rows must exist. The
// capacity is cut, so that an append cannot write into the mapping.
func (m *memory) run(a, b int) []byte {
	s, at := m.find(a)
	if end := at + (b-a)*m.size; end <= len(s.data) {
		return s.data[at:end:end]
	}
	return nil
}

// contiguous reports whether rows [a, b) are one piece of mapped memory. The rows must exist.
func (m *memory) contiguous(a, b int) bool { return a == b || m.run(a, b) != nil }

// span calls f with the memory of rows [a, b), one piece per segment.
func (m *memory) span(a, b int, f func(s *segment, from, to int) error) error {
	for a < b {
		s, at := m.find(a)
		n := min(b-a, (len(s.data)-at)/m.size)
		if err := f(s, at, at+n*m.size); err != nil {
			return err
		}
		a += n
	}
	return nil
}

// copyRun brings rows [a, b) in and copies them to dst.
func (m *memory) copyRun(a, b int, dst []byte) (err error) {
	defer catch(&err, debug.SetPanicOnFault(true), m)
	return m.span(a, b, func(s *segment, from, to int) error {
		if err := m.bring(s, from, to); err != nil {
			return err
		}
		dst = dst[copy(dst, s.data[from:to]):]
		return nil
	})
}

// bring reads the pages of bytes [from, to) of a segment, unless they were read before. It waits in
// a system call, during which the Go scheduler runs other goroutines; a page fault would block a P.
func (m *memory) bring(s *segment, from, to int) error {
	if s.warm.has(from, to) {
		return nil
	}
	switch err := populate(s.data[from:to]); {
	case err == nil, errors.Is(err, mmap.ErrUnsupported):
		m.note(s, from, to)
		return nil
	default:
		return m.c.lost(s.first+from/m.size, err)
	}
}

// note remembers that bytes [from, to) of a segment were brought in. While memory is scarce nothing
// is remembered: the kernel takes pages back, and touching a missing page makes the kernel read
// around it, by as much as the disk reads ahead.
func (m *memory) note(s *segment, from, to int) {
	if !m.isScarce() {
		s.warm.add(from, to)
	}
}

// isScarce reports whether the kernel may take back pages at any time, because it took pages back
// recently or the dataset is larger than memory.
func (m *memory) isScarce() bool {
	until := m.scarce.Load()
	return until > 0 && until > int64(time.Since(began))
}

// isWarm reports whether rows [a, b) are one piece whose pages were all brought in. The rows must
// exist.
func (m *memory) isWarm(a, b int) bool {
	if a == b {
		return true
	}
	s, at := m.find(a)
	end := at + (b-a)*m.size
	return end <= len(s.data) && s.warm.has(at, end)
}

// fault implements faulter. A file that was truncated under the mapping is corrupt.
func (m *memory) fault(addr uintptr) error {
	for k := range m.segments {
		s := &m.segments[k]
		if at := addr - addressOf(s.data); at < uintptr(len(s.data)) {
			return m.c.lost(s.first+int(at)/m.size, store.ErrCorrupt)
		}
	}
	return nil
}

// intact returns an error if a segment's file has become too short for its bytes.
func (m *memory) intact() error {
	for k := range m.segments {
		s := &m.segments[k]
		if at, lost := s.of.Lost(s.from, s.from+len(s.data)); lost {
			return m.c.lost(s.first+(at-s.from)/m.size, store.ErrCorrupt)
		}
	}
	return nil
}

// addressOf returns the address of b for comparisons. It must never be converted back to a pointer.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// How often and how many warm pages are sampled for eviction. Reading the clock takes as long as
// a small Gather, so that Gathers of fewer than lookBytes read it only one time in lookRarely.
const (
	lookEvery  = 250 * time.Millisecond
	lookAt     = 16
	lookBytes  = 64 << 10
	lookRarely = 16
)

// scarceFor is how long memory counts as scarce after the kernel took pages back.
const scarceFor = 4 * time.Second

// began is the origin of the times here: differences to it are monotonic, and fit an atomic.
var began = time.Now()

// look samples warm pages, and forgets all of them if the kernel took any back. A compare-and-swap
// on the time lets a single goroutine sample, while all others go on.
func (m *memory) look() {
	now, last := int64(time.Since(began)), m.looked.Load()
	if now-last < int64(lookEvery) || !m.looked.CompareAndSwap(last, now) {
		return
	}
	for i := range m.segments {
		if s := &m.segments[i]; s.evicted() {
			m.scarce.Store(max(m.scarce.Load(), now+int64(scarceFor)))
			s.warm.clear()
			m.evicted.Add(1)
		}
	}
}

// evicted reports whether one of a few random pages that were brought in is not in memory any more.
func (s *segment) evicted() bool {
	for range lookAt {
		at := rand.IntN(len(s.data))
		if !s.warm.has(at, at+1) {
			continue
		}
		if in, _, err := resident(s.data[at : at+1]); err == nil && in == 0 {
			return true
		}
	}
	return false
}

// resident estimates which part of the bytes is in memory, from 256 pages in a regular grid. It
// returns -1 if the system does not report.
func (m *memory) resident() float64 {
	in, all := 0, 0
	step := max(1, int(m.bytes())/256)
	for i := range m.segments {
		data := m.segments[i].data
		for at := min(step, len(data)) / 2; at < len(data); at += step {
			n, pages, err := resident(data[at : at+1])
			if err != nil {
				return -1
			}
			in, all = in+n, all+pages
		}
	}
	if all == 0 {
		return -1
	}
	return float64(in) / float64(all)
}

// blockBytes is the unit in which adopts looks at memory, in bytes: the pages of one word of a
// pageSet.
var blockBytes = 64 << pageShift

// coldBytes is how many bytes a record must have for a pread of its own, and from which on adopts
// does not look at more than was asked for.
const coldBytes = 64 << 10

// After looksInVain looks that found nothing, only one look in looksAfter is made: on a cold
// dataset each look is a wasted system call.
const (
	looksInVain = 8
	looksAfter  = 16
)

// start starts to read the pages of rows [a, b) that are not in memory, and no other pages. Without
// start, the first touch of a page would make the kernel also read the pages around it, as many as
// the disk reads ahead.
func (m *memory) start(a, b int) error {
	return m.span(a, b, func(s *segment, from, to int) error {
		if !s.warm.has(from, to) && !m.adopts(s, from, to) {
			willNeed(s.data[from:to])
		}
		return nil
	})
}

// adopts brings in bytes [from, to) of s, and a block around them if they are few, provided that
// all of the block is in the page cache already. The two system calls of adopts make such calls
// unnecessary for all other records of the block. After many looks in vain adopts looks rarely. It
// does not look at all if the system does not report which pages are in memory, or while pages
// would not stay.
func (m *memory) adopts(s *segment, from, to int) bool {
	if !m.reported || m.isScarce() {
		return false
	}
	if n := m.inVain.Load(); n >= looksInVain && n%looksAfter != 0 {
		m.inVain.Add(1)
		return false
	}
	if to-from < coldBytes {
		from &^= blockBytes - 1
		to = min((to+blockBytes-1)&^(blockBytes-1), len(s.data))
	}
	block := s.data[from:to]
	if in, pages, err := resident(block); err != nil || in < pages || populate(block) != nil {
		m.inVain.Add(1)
		return false
	}
	m.inVain.Store(0)
	m.note(s, from, to)
	return true
}

// wants collects the ranges that a call will read and that were not brought in before. The disk is
// then asked for all of them at once, in order, and for no range twice.
type wants struct{ list []span }

// span is bytes [from, to) of a segment.
type span struct {
	s        *segment
	from, to int
}

// meets reports whether next, which begins no earlier than w, shares pages with w or follows it
// directly.
func (w span) meets(next span) bool {
	return next.s == w.s && next.from>>pageShift <= (w.to-1)>>pageShift+1
}

// want adds bytes [from, to) of s to w, unless they are in the page cache: then want maps them at
// once and returns true.
func (m *memory) want(w *wants, s *segment, from, to int) (here bool) {
	if m.adopts(s, from, to) {
		return true
	}
	w.list = append(w.list, span{s, from, to})
	return false
}

// send starts to read the collected ranges, with one system call per run of adjacent pages.
func (w *wants) send() {
	slices.SortFunc(w.list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.s.first, b.s.first), cmp.Compare(a.from, b.from))
	})
	for rest := w.list; len(rest) > 0; {
		at := rest[0]
		for rest = rest[1:]; len(rest) > 0 && at.meets(rest[0]); rest = rest[1:] {
			at.to = max(at.to, rest[0].to)
		}
		willNeed(at.s.data[at.from:at.to])
	}
}

// How many bytes are prefetched before they are needed, and the most of one row: of a long row the
// hardware prefetcher loads the rest once its beginning was read.
const (
	prefetchAhead = 12 << 10
	prefetchRow   = 1 << 10
	longRow       = 4 << 10
)

// prefetchDistance returns how many rows before its turn a row is prefetched into the CPU's cache.
func (m *memory) prefetchDistance() int { return max(1, prefetchAhead/max(1, m.size)) }

// prefix returns how many bytes of a row are prefetched.
func (m *memory) prefix() int {
	if m.size >= longRow {
		return prefetchRow
	}
	return m.size
}

// loadFirst prefetches the first rows of a list into the CPU's cache, and does not wait.
func (m *memory) loadFirst(rows []int) {
	if m.numbers() {
		return
	}
	part := m.prefix()
	for _, i := range rows[:min(len(rows), m.prefetchDistance())] {
		m.load(i, part)
	}
}

// load prefetches the first bytes of row i into the CPU's cache, if the row exists.
func (m *memory) load(i, bytes int) {
	if uint(i) < uint(m.c.len()) {
		s, at := m.find(i)
		kernel.Prefetch(s.data[at:min(at+bytes, len(s.data))])
	}
}

// copyRows copies rows that are in memory and whose first ones are prefetched. It prefetches later
// rows while it copies, which hides most of the memory's latency.
func (m *memory) copyRows(rows []int, dst []byte) {
	if m.numbers() {
		m.copyNumbers(rows, dst)
		return
	}
	size, distance, part := m.size, m.prefetchDistance(), m.prefix()
	for k, i := range rows {
		if k+distance < len(rows) {
			m.load(rows[k+distance], part)
		}
		kernel.Copy(dst[k*size:(k+1)*size], m.row(i))
	}
}

// numbers reports whether a row is a number of 4 or 8 bytes, in one piece of memory: then a loop of loads is faster
// than prefetching, since the processor has many loads under way by itself.
func (m *memory) numbers() bool { return (m.size == 4 || m.size == 8) && len(m.segments) == 1 }

// copyNumbers is copyRows where numbers reports true.
func (m *memory) copyNumbers(rows []int, dst []byte) {
	data := m.segments[0].data
	if m.size == 4 {
		for k, i := range rows {
			binary.NativeEndian.PutUint32(dst[4*k:], binary.NativeEndian.Uint32(data[4*i:]))
		}
		return
	}
	for k, i := range rows {
		binary.NativeEndian.PutUint64(dst[8*k:], binary.NativeEndian.Uint64(data[8*i:]))
	}
}
