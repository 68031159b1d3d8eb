package mirror

import "time"

// limiter finds the number of concurrent requests that fill the link: it tries more while that
// brings more bytes per second, and fewer when the store refuses requests. It has no lock; the
// engine's mu guards it.
type limiter struct {
	now, most int
	full      bool // the limit held a request back since the window began
	began     time.Time
	seen      int64   // bytes that had arrived when the window began
	last      float64 // bytes per second before the last change
	best      float64 // the highest rate of any window
}

// The first limit, and the shortest time over which a rate is measured.
const (
	firstLimit   = 32
	limiterLooks = 250 * time.Millisecond
)

func newLimiter(most int) limiter { return limiter{now: min(firstLimit, most), most: most} }

// add takes a finished request into account. arrived is the number of bytes that all requests have
// brought so far.
func (l *limiter) add(arrived int64, err error) {
	l.note(time.Now(), arrived, err)
}

// note counts the bytes that arrived up to a time, and adapts the limit.
func (l *limiter) note(at time.Time, arrived int64, err error) {
	if err != nil {
		l.now = max(1, l.now/2)
		l.last = 0
		return
	}
	if l.began.IsZero() {
		l.began, l.seen = at, arrived // the time in which earlier bytes came is unknown
		return
	}
	took := at.Sub(l.began)
	if took < limiterLooks {
		return
	}
	rate := float64(arrived-l.seen) / took.Seconds()
	if took < 4*limiterLooks { // otherwise the link was idle in between
		l.best = max(l.best, rate)
		l.judge(rate)
	}
	l.began, l.seen, l.full = at, arrived, false
}

// judge raises the limit by half while more requests in flight bring more bytes, and lowers it when the rate falls. It
// only judges times in which the limit was reached: otherwise the rate shows how much was asked for, and not how fast
// the link is.
func (l *limiter) judge(rate float64) {
	switch {
	case !l.full:
	case rate > 1.1*l.last:
		l.now = min(l.most, l.now*3/2+1)
		l.last = rate
	case rate < 0.7*l.last:
		l.now = max(4, l.now*3/4)
		l.last = rate
	default:
		l.last *= 0.98 // the link may get faster or slower, so old rates count less
	}
}
