package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/penstock/penstock/internal/units"
)

// lines prints progress to something that is not a terminal, such as a log file: a line every
// lineAtMost, or at each tenth of the whole if lineAtLeast has passed, and a line at the end.
type lines struct {
	out              io.Writer
	name, what, unit string
	total            int64
	begin, last      time.Time
	tenth            int64
}

// The time between two lines. A log of hours of work stays readable, and short work still shows
// tenths.
const (
	lineAtMost  = 10 * time.Second // between two lines
	lineAtLeast = 2 * time.Second
)

func newLines(out io.Writer, name, what string, total int64, unit string) *lines {
	now := time.Now()
	return &lines{out: out, name: name, what: what, unit: unit, total: total, begin: now, last: now}
}

func (l *lines) every() time.Duration { return 250 * time.Millisecond }

func (l *lines) show(done int64) { l.showAt(time.Now(), done) }

// showAt prints a line if a line is due at the time now. The time is a parameter so that tests need
// no waiting.
func (l *lines) showAt(now time.Time, done int64) {
	since, tenth := now.Sub(l.last), l.tenths(done)
	if since < lineAtMost && (since < lineAtLeast || tenth == l.tenth) {
		return
	}
	l.last, l.tenth = now, tenth
	l.print(done, now.Sub(l.begin))
}

// tenths returns how many tenths of the whole are done; 0 if the total is unknown.
func (l *lines) tenths(done int64) int64 {
	if l.total <= 0 {
		return 0
	}
	return done * 10 / l.total
}

// print writes the line: done, total, rate, and the remaining time at the average rate so far.
func (l *lines) print(done int64, elapsed time.Duration) {
	rate := units.Rate(done, elapsed)
	if l.total <= 0 {
		fmt.Fprintf(l.out, "%s: %s: %s %s, %s\n", l.name, l.what, units.Count(done), l.unit, rate)
		return
	}
	left := ""
	if done > 0 && done < l.total {
		left = ", " + units.Duration(time.Duration(float64(elapsed)*float64(l.total-done)/float64(done))) + " left"
	}
	fmt.Fprintf(l.out, "%s: %s: %s of %s %s (%d %%), %s%s\n",
		l.name, l.what, units.Count(done), units.Count(l.total), l.unit, done*100/l.total, rate, left)
}

// finish prints the last line, unless nothing was done.
func (l *lines) finish(done int64, elapsed time.Duration) {
	if done > 0 {
		l.print(done, elapsed)
	}
}
