package mirror

import (
	"os"
	"slices"
	"sort"
	"sync"
)

// segments counts the users of segments in this process, so that segments in use stay in the
// mirror, and evicts unused segments.
type segments struct {
	index *index

	mu   sync.Mutex
	pins []int32 // by segment: number of uses in this process
}

// init sets the number of segments.
func (s *segments) init(segments int64) { s.pins = make([]int32, segments) }

// take keeps the segments of blocks in the mirror until drop. The first use in this process is
// announced in the state, for other processes.
func (s *segments) take(ranges []blocks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range ranges {
		for seg := r.x.segmentOf(r.from); seg <= r.x.segmentOf(r.to-1); seg++ {
			if s.pins[seg]++; s.pins[seg] == 1 {
				s.index.state.use(seg)
			}
		}
	}
}

// drop undoes a take.
func (s *segments) drop(ranges []blocks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range ranges {
		for seg := r.x.segmentOf(r.from); seg <= r.x.segmentOf(r.to-1); seg++ {
			if s.pins[seg]--; s.pins[seg] == 0 {
				s.index.state.unuse(seg)
			}
		}
	}
}

// unless calls f, which clears bits of a segment, if nobody in this process uses the segment, and
// reports whether it did.
func (s *segments) unless(segment int64, f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[segment] > 0 {
		return false
	}
	f()
	return true
}

// claim keeps blocks in the mirror until disclaim. If the whole dataset fits, nothing is ever
// evicted, so the claim needs no count and lasts until Close.
func (s *segments) claim(ranges []blocks) {
	if !s.index.fits {
		s.take(ranges)
		return
	}
	for _, r := range ranges {
		for seg := r.x.segmentOf(r.from); seg <= r.x.segmentOf(r.to-1); seg++ {
			s.index.state.use(seg)
		}
	}
}

// disclaim undoes a claim, unless the whole dataset fits.
func (s *segments) disclaim(ranges []blocks) {
	if !s.index.fits {
		s.drop(ranges)
	}
}

// evict removes at least n bytes of segments from this process's mirror if it can, the least
// recently used first, and returns how many bytes it removed.
func (s *segments) evict(n int64) (freed int64) {
	var list []int64
	for seg := range s.index.grid.segments {
		if x, from, to := s.segment(seg); !x.metadata && s.anyThere(x, from, to) {
			list = append(list, seg)
		}
	}
	slices.SortFunc(list, func(a, b int64) int { return int(int64(s.index.state.used[a]) - int64(s.index.state.used[b])) })
	for _, seg := range list {
		if freed >= n {
			break
		}
		freed += s.evictSegment(seg)
	}
	return freed
}

// segment returns the blocks of a segment.
func (s *segments) segment(number int64) (x *extent, from, to int64) {
	list := s.index.grid.extents
	x = list[sort.Search(len(list), func(i int) bool { return list[i].segment+list[i].segments > number })]
	from = (number - x.segment) * x.perSeg
	return x, from, min(from+x.perSeg, x.count)
}

// anyThere reports whether one of blocks [from, to) is present.
func (s *segments) anyThere(x *extent, from, to int64) bool {
	for b := from; b < to; b++ {
		if s.index.state.has(x.base + b) {
			return true
		}
	}
	return false
}

// evictSegment removes a segment that nobody uses: first its bits, then, if still nobody uses it,
// its bytes. A process that begins to use the segment in between either sees the cleared bits or is
// seen, see state.use. The lock keeps others from fetching the blocks meanwhile.
func (s *segments) evictSegment(number int64) (freed int64) {
	x, from, to := s.segment(number)
	lock := lockBlocks + x.base + from
	if !s.index.state.lock.try(lock, to-from) {
		return 0
	}
	defer s.index.state.lock.free(lock, to-from)
	f, err := s.index.files.root.OpenFile(x.name, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	s.unless(number, func() { freed = s.empty(f, x, from, to, number) })
	return freed
}

// empty removes all blocks of a segment, unless another process uses it. A disk frees whole pages
// only, so adjacent blocks are freed together, and pages left over from blocks that were removed
// earlier go with them.
func (s *segments) empty(f *os.File, x *extent, from, to, number int64) (freed int64) {
	var was []int64
	for b := from; b < to; b++ {
		if s.index.state.has(x.base + b) {
			was = append(was, b)
			s.index.state.remove(x.base + b)
		}
	}
	if s.index.state.others(number) {
		for _, b := range was {
			s.index.state.add(x.base + b)
		}
		return 0
	}
	for _, b := range was {
		s.index.unlearn(x, b)
	}
	before := fileBytes(f)
	for b := from; b < to; {
		end := b + 1
		for end < to && x.gap(end-1, end) == 0 {
			end++
		}
		_ = punch(f, x.offset(b), x.spanBytes(b, end)) // its effect is measured below
		b = end
	}
	return max(0, before-fileBytes(f)) // others may be writing to the file
}

// fileBytes returns the disk space of an open file.
func fileBytes(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return diskBytes(info)
}
