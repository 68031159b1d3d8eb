package mirror

import "sync"

// pins counts, of each segment, how often it is being used in this process.
type pins struct {
	mu sync.Mutex
	n  []int32
}

func (p *pins) init(segments int64) { p.n = make([]int32, segments) }

// take keeps the segments of blocks where they are.
func (p *pins) take(s *state, ranges []blocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range ranges {
		for seg := r.x.segmentOf(r.from); seg <= r.x.segmentOf(r.to-1); seg++ {
			if p.n[seg]++; p.n[seg] == 1 {
				s.use(seg)
			}
		}
	}
}

// drop ends a take.
func (p *pins) drop(s *state, ranges []blocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range ranges {
		for seg := r.x.segmentOf(r.from); seg <= r.x.segmentOf(r.to-1); seg++ {
			if p.n[seg]--; p.n[seg] == 0 {
				s.unuse(seg)
			}
		}
	}
}

// unless calls f, which takes bits away, if nobody in this process uses a segment.
func (p *pins) unless(segment int64, f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n[segment] > 0 {
		return false
	}
	f()
	return true
}
