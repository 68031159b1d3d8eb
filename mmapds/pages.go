package mmapds

import (
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/penstock/penstock/internal/sys/mmap"
)

// System calls on mapped memory. They are variables so that a test can count them.
var (
	willNeed = mmap.WillNeed
	populate = mmap.Populate
	resident = mmap.Resident
)

// pageSet remembers which pages of a segment were brought in: one bit per page, 1/32768 of the
// mapped bytes. A page that the kernel took back since then costs a fault and no error; look finds
// that out before long. The words are atomic, and a bit that is lost or set twice does no harm.
type pageSet struct {
	bits    []atomic.Uint64
	missing *atomic.Int64 // pages that were not added; a pointer, as Records copies the set
}

// pageShift is the binary logarithm of the page size.
var pageShift = bits.TrailingZeros(uint(os.Getpagesize()))

// newPageSet returns an empty set for n bytes.
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

// add marks the pages of bytes [from, to). missing counts down by exactly the bits that this call
// set, so that several goroutines may add the same pages.
func (p *pageSet) add(from, to int) {
	for page, last := from>>pageShift, (to-1)>>pageShift; page <= last; page = (page | 63) + 1 {
		mask := wordMask(page, last)
		p.missing.Add(-int64(bits.OnesCount64(mask &^ p.bits[page/64].Or(mask))))
	}
}

// clear unmarks all pages.
func (p *pageSet) clear() {
	for i := range p.bits {
		p.missing.Add(int64(bits.OnesCount64(p.bits[i].Swap(0))))
	}
}

// wordMask returns the bits for pages page to last within page's word.
func wordMask(page, last int) uint64 {
	n := min(64-page%64, last-page+1)
	return (^uint64(0) >> (64 - n)) << (page % 64)
}
