package mirror

import (
	"os"
	"slices"
	"sort"
	"sync"
)

// segments keeps those that are used where they are, and takes others out of the mirror to make room.
type segments struct {
	index *index

	mu   sync.Mutex
	pins []int32 // of each segment, how often it is being used in this process
}

func (s *segments) init(segments int64) { s.pins = make([]int32, segments) }

// take keeps the segments of blocks where they are.
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

// drop ends a take.
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

// unless calls f, which takes bits away, if nobody in this process uses a segment.
func (s *segments) unless(segment int64, f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[segment] > 0 {
		return false
	}
	f()
	return true
}

// claim keeps blocks where they are: until Close, if all of the dataset may be in the mirror,
// else until disclaim.
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

// disclaim drops blocks where the cache is too small for the whole dataset, and keeps them where it fits.
func (s *segments) disclaim(ranges []blocks) {
	if !s.index.fits {
		s.drop(ranges)
	}
}

// evict takes segments out of the own mirror, those that were not used for longest first.
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

func (s *segments) anyThere(x *extent, from, to int64) bool {
	for b := from; b < to; b++ {
		if s.index.state.has(x.base + b) {
			return true
		}
	}
	return false
}

// evictSegment takes one out, if nobody uses it: first the bits, then, if still nobody does,
// the bytes. A process that begins to use it in between sees the one or is seen.
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

// empty takes all blocks of a segment out, unless another process uses one. The disk gets back
// whole pages: so the gaps between present blocks go with them, as do pages left over from blocks
// that were removed before.
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
		_ = punch(f, x.offset(b), x.spanBytes(b, end)) // what that gave is seen below
		b = end
	}
	return max(0, before-fileBytes(f)) // others may be writing to it
}

// fileBytes returns what an open file takes on disk.
func fileBytes(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return diskBytes(info)
}
