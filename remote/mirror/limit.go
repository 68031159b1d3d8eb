package mirror

import "time"

// limiter finds out how many requests at a time fill the link: it tries more as long as that
// brings more bytes a second, and goes back where the store complains.
type limiter struct {
	now, most int
	full      bool // it held something back since the window began
	began     time.Time
	seen      int64   // bytes that had come when it began
	last      float64 // bytes a second in the window before the last change
	best      float64 // of all windows
}

// The limiter's first limit, and the length of its observations.
const (
	firstLimit   = 32
	limiterLooks = 250 * time.Millisecond
)

func newLimiter(most int) limiter { return limiter{now: min(firstLimit, most), most: most} }

// add takes a finished request into account; arrived is how many bytes have come so far, of all
// requests.
func (l *limiter) add(arrived int64, err error) {
	l.note(time.Now(), arrived, err)
}

// note takes what arrived up to a time, and adapts the limit. An error halves it, as TCP does: stores refuse requests
// that come too fast, and every repeated refusal makes the pause longer. Rates are compared over limiterLooks at least,
// since single answers come in bursts; a longer time without an answer was idle, and says nothing about the link.
func (l *limiter) note(at time.Time, arrived int64, err error) {
	if err != nil {
		l.now = max(1, l.now/2)
		l.last = 0
		return
	}
	if l.began.IsZero() {
		l.began, l.seen = at, arrived // what came before took a time that is not known
		return
	}
	took := at.Sub(l.began)
	if took < limiterLooks {
		return
	}
	rate := float64(arrived-l.seen) / took.Seconds()
	if took < 4*limiterLooks { // else the link was idle in between
		l.best = max(l.best, rate)
		l.judge(rate)
	}
	l.began, l.seen, l.full = at, arrived, false
}

// judge raises the limit by half while more requests in flight bring more bytes, and lowers it when the rate falls. It
// only judges times in which the limit was reached: otherwise the rate is what was asked for and not what the link can
// do.
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
		l.last *= 0.98 // what was true of the link need not stay so
	}
}
