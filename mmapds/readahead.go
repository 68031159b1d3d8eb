package mmapds

import (
	"cmp"
	"slices"

	"github.com/penstock/penstock/internal/sys/mmap"
)

// The system calls on mapped memory, which a test counts.
var (
	willNeed = mmap.WillNeed
	populate = mmap.Populate
	resident = mmap.Resident
)

// wants collects what a call is going to read of memory that was not brought in before, so that
// the disk is asked for all of it at once, in order, and for nothing twice.
type wants struct{ list []span }

// span is bytes [from, to) of a segment.
type span struct {
	s        *segment
	from, to int
}

// want asks for bytes [from, to) of s, unless they are in the page cache: then it maps them at
// once, and says so.
func (c *column) want(w *wants, s *segment, from, to int) (here bool) {
	if c.adopts(s, from, to) {
		return true
	}
	w.list = append(w.list, span{s, from, to})
	return false
}

// send starts to read what was collected: one system call for pages that follow each other.
func (w *wants) send() {
	slices.SortFunc(w.list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.s.first, b.s.first), cmp.Compare(a.from, b.from))
	})
	for rest := w.list; len(rest) > 0; {
		at := rest[0]
		for rest = rest[1:]; len(rest) > 0 && rest[0].s == at.s && rest[0].from>>pageShift <= (at.to-1)>>pageShift+1; rest = rest[1:] {
			at.to = max(at.to, rest[0].to)
		}
		willNeed(at.s.data[at.from:at.to])
	}
}

// blockBytes is how much is looked at together: the pages of one word of a pageSet.
var blockBytes = 64 << pageShift

// How many looks that find nothing are too many, and which of those that would follow are taken
// all the same.
const (
	looksInVain = 8
	looksAfter  = 16
)

// adopts maps bytes [from, to) of s, and what is around them, if all of that is in the page
// cache: it takes two system calls, and saves them for all other records there. It knows how to
// do without looking where nothing is found, and it does not look at records that are many pages
// long, nor where the system does not report.
func (c *column) adopts(s *segment, from, to int) bool {
	if !c.reported || to-from >= coldBytes {
		return false
	}
	if n := c.counts.inVain.Load(); n >= looksInVain && n%looksAfter != 0 {
		c.counts.inVain.Add(1)
		return false
	}
	from &^= blockBytes - 1
	to = min((to+blockBytes-1)&^(blockBytes-1), len(s.data))
	block := s.data[from:to]
	if in, pages, err := resident(block); err != nil || in < pages || populate(block) != nil {
		c.counts.inVain.Add(1)
		return false
	}
	c.counts.inVain.Store(0)
	s.warm.add(from, to)
	return true
}
