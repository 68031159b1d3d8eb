package cli

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/remote"
)

// Progress shows how far a long job is: a bar on a terminal, a line now and then in a log file,
// JSON events for a program, and nothing if it is quiet. A job has stages one after the other, each
// between Begin and End. Any goroutine may call Add, which is one atomic addition, Warn and Print;
// Begin, End and Note belong to the goroutine that runs the job.
//
// The display runs in a goroutine of its own, which reads the counter at intervals: the workers
// never wait for a terminal.
type Progress struct {
	out   io.Writer
	name  string
	quiet bool
	json  bool
	done  atomic.Int64
	stop  chan struct{} // nil without a stage; End closes it
	ended chan struct{} // closed when the display has stopped

	warned atomic.Int64 // time of the last Warn, in ns since 1970; 0 before the first
}

// display shows one stage. show is called every now and then with the number of items done so far,
// finish once at the end; the same goroutine calls both.
type display interface {
	show(done int64)
	finish(done int64, elapsed time.Duration)
	every() time.Duration
}

// NewProgress returns a Progress that writes to out, usually stderr. name is the program's.
func NewProgress(out io.Writer, name string, quiet bool) *Progress {
	return &Progress{out: out, name: name, quiet: quiet}
}

// NewJSONProgress returns a Progress that writes an [Event] a line, for a program that reads out.
func NewJSONProgress(out io.Writer) *Progress { return &Progress{out: out, json: true} }

// Begin starts a stage: what is done ("writing"), the total (-1 if unknown), and what is counted
// ("images").
func (p *Progress) Begin(what string, total int64, unit string) {
	p.done.Store(0)
	if p.quiet {
		return
	}
	p.stop, p.ended = make(chan struct{}), make(chan struct{})
	go p.run(p.display(what, total, unit), time.Now())
}

// display returns the display that suits the output.
func (p *Progress) display(what string, total int64, unit string) display {
	switch {
	case p.json:
		return newEvents(p.out, what, total, unit)
	case IsTerminal(p.out):
		return newBar(p.out, what, total, unit)
	}
	return newLines(p.out, p.name, what, total, unit)
}

// run updates the display of a stage until End.
func (p *Progress) run(d display, begin time.Time) {
	defer close(p.ended)
	ticker := time.NewTicker(d.every())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.show(p.done.Load())
		case <-p.stop:
			d.finish(p.done.Load(), time.Since(begin))
			return
		}
	}
}

// Add counts n more units.
func (p *Progress) Add(n int64) { p.done.Add(n) }

// End ends the stage and waits until the display is removed, so that output afterwards does not mix
// with it. Without a stage, End does nothing.
func (p *Progress) End() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	<-p.ended
	p.stop = nil
}

// warnEvery is the shortest time between two lines of Warn.
const warnEvery = 2 * time.Second

// Warn prints a line, also during a stage. A line within two seconds of the previous one is
// dropped: a store that fails a thousand requests should be one line and not a thousand.
func (p *Progress) Warn(text string) {
	now := time.Now().UnixNano()
	last := p.warned.Load()
	if p.quiet || last != 0 && now-last < int64(warnEvery) || !p.warned.CompareAndSwap(last, now) {
		return
	}
	p.Print(text)
}

// Print prints a line like Warn, but never drops it.
func (p *Progress) Print(text string) {
	if p.quiet {
		return
	}
	text = remote.RedactURLs(text)
	if p.json {
		Event{Warning: text}.write(p.out)
		return
	}
	clear := ""
	if IsTerminal(p.out) {
		clear = "\r\x1b[K" // over the bar
	}
	fmt.Fprintf(p.out, "%s%s: %s\n", clear, p.name, shell.Lines(text))
}

// Note prints lines between two stages, unless the Progress is quiet.
func (p *Progress) Note(text string) {
	if p.quiet || text == "" {
		return
	}
	text = remote.RedactURLs(text)
	if p.json {
		Event{Note: strings.TrimRight(text, "\n")}.write(p.out)
		return
	}
	for line := range strings.Lines(text) {
		fmt.Fprintf(p.out, "%s: %s\n", p.name, shell.Lines(strings.TrimRight(line, "\n")))
	}
}
