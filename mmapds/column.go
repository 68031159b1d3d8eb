package mmapds

import (
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/tensor"
)

// column is one array as mapped memory: one segment wherever extents could be mapped side
// by side, else one an extent.
type column struct {
	meta     *layout.Column
	spec     tensor.Spec // of a row
	size     int         // bytes of a row
	block    int         // rows that a checksum covers
	segments []segment   // none of them is empty
	packed   *packed     // instead of segments
	counts   *counts
	reading  ReadMode
	exceeds  bool // the dataset is much larger than memory
	direct   direct
	reported bool // the system reports which of its pages are in memory
	checks   verification
	sums     []sums // by extent; nil if there are none, or nobody wants them
}

func newColumn(meta *layout.Column) column {
	size := meta.Spec.RecordBytes()
	return column{meta: meta, spec: meta.Spec, size: size, block: int(layout.BlockRecords(size)), counts: new(counts)}
}

type segment struct {
	first int    // number of its first row
	data  []byte // whole rows: bytes of the mapping, from byte from on
	from  int
	of    *mmap.Mapping
	warm  pageSet
}

func (c *column) parts(extents []layout.Extent) []mmap.Part {
	parts := make([]mmap.Part, len(extents))
	for i, e := range extents {
		parts[i] = mmap.Part{Path: e.Path, Offset: e.Offset, Bytes: e.Count * int64(c.size)}
	}
	return parts
}

func (c *column) add(first int, m *mmap.Mapping, from, n int) {
	data := m.Bytes()[from : from+n : from+n]
	c.segments = append(c.segments, segment{first: first, data: data, from: from, of: m, warm: newPageSet(n)})
}

// full reports whether all pages were brought in already.
func (c *column) full() bool { return len(c.segments) == 1 && c.segments[0].warm.full() }

func (c *column) len() int { return int(c.meta.Rows) }

// check reports records that do not exist.
func (c *column) check(a, b int) error {
	return checkRange(c.spec.Name, a, b, c.len())
}

func checkRange(field string, a, b, n int) error {
	if a < 0 || b < a || b > n {
		return fmt.Errorf("mmapds: field %q: records [%d, %d) of %d do not exist", field, a, b, n)
	}
	return nil
}

// find returns the segment that holds row i, which must exist, and the row's offset.
func (c *column) find(i int) (s *segment, at int) {
	low, high := 0, len(c.segments)
	for low < high-1 {
		if mid := (low + high) / 2; c.segments[mid].first <= i {
			low = mid
		} else {
			high = mid
		}
	}
	s = &c.segments[low]
	return s, (i - s.first) * c.size
}

// row returns the memory of row i, which must exist.
func (c *column) row(i int) []byte {
	s, at := c.find(i)
	return s.data[at : at+c.size]
}

// span calls f with the memory of rows [a, b), in at most one piece a segment.
func (c *column) span(a, b int, f func(s *segment, from, to int) error) error {
	for a < b {
		s, at := c.find(a)
		n := min(b-a, (len(s.data)-at)/c.size)
		if err := f(s, at, at+n*c.size); err != nil {
			return err
		}
		a += n
	}
	return nil
}

// pageSet remembers which pages of a segment were brought in already: one bit a page, 1/32768
// of the mapped bytes. A page that the kernel took back since then costs a fault, no error;
// look finds out before long.
type pageSet struct {
	bits    []atomic.Uint64
	missing *atomic.Int64 // pages that were not added
}

var pageShift = bits.TrailingZeros(uint(os.Getpagesize()))

func newPageSet(n int) pageSet {
	p := pageSet{bits: make([]atomic.Uint64, n>>pageShift/64+1), missing: new(atomic.Int64)}
	p.missing.Store(int64((n + 1<<pageShift - 1) >> pageShift))
	return p
}

// full reports whether all pages were added.
func (p *pageSet) full() bool { return p.missing.Load() == 0 }

// has reports whether all pages of bytes [from, to) were added.
func (p *pageSet) has(from, to int) bool {
	for page, last := from>>pageShift, (to-1)>>pageShift; page <= last; page = (page | 63) + 1 {
		if mask := wordMask(page, last); p.bits[page/64].Load()&mask != mask {
			return false
		}
	}
	return true
}

// add notes the pages of bytes [from, to).
func (p *pageSet) add(from, to int) {
	for page, last := from>>pageShift, (to-1)>>pageShift; page <= last; page = (page | 63) + 1 {
		mask := wordMask(page, last)
		p.missing.Add(-int64(bits.OnesCount64(mask &^ p.bits[page/64].Or(mask))))
	}
}

// clear forgets all pages.
func (p *pageSet) clear() {
	for i := range p.bits {
		p.missing.Add(int64(bits.OnesCount64(p.bits[i].Swap(0))))
	}
}

// wordMask returns the bits of page's word that stand for pages page to last.
func wordMask(page, last int) uint64 {
	n := min(64-page%64, last-page+1)
	return (^uint64(0) >> (64 - n)) << (page % 64)
}
