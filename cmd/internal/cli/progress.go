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

// Progress shows how far a long job is: by a bar on a terminal, by a line now and then
// elsewhere, by JSON for programs, and not at all if it is quiet. Add may be called by any goroutine
// and costs next to nothing; Begin and End belong to one.
type Progress struct {
	out   io.Writer
	name  string
	quiet bool
	json  bool
	done  atomic.Int64
	stop  chan struct{}
	ended chan struct{}

	warned atomic.Int64 // time of the last Warn
}

// display shows the state of a stage.
type display interface {
	show(done int64)
	finish(done int64, elapsed time.Duration)
	every() time.Duration
}

// NewProgress returns the Progress of the program of that name, on out (stderr).
func NewProgress(out io.Writer, name string, quiet bool) *Progress {
	return &Progress{out: out, name: name, quiet: quiet}
}

// NewJSONProgress returns a Progress for a program that reads out: an [Event] a line.
func NewJSONProgress(out io.Writer) *Progress { return &Progress{out: out, json: true} }

// Begin starts a stage: what is done ("writing"), to how many (-1 if unknown), of what
// ("images").
func (p *Progress) Begin(what string, total int64, unit string) {
	p.done.Store(0)
	if p.quiet {
		return
	}
	p.stop, p.ended = make(chan struct{}), make(chan struct{})
	go p.run(p.display(what, total, unit), time.Now())
}

func (p *Progress) display(what string, total int64, unit string) display {
	switch {
	case p.json:
		return newEvents(p.out, what, total, unit)
	case IsTerminal(p.out):
		return newBar(p.out, what, total, unit)
	}
	return newLines(p.out, p.name, what, total, unit)
}

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

// Add says that n more are done.
func (p *Progress) Add(n int64) { p.done.Add(n) }

// End finishes the stage; afterwards nothing more is printed. Without a stage it does
// nothing.
func (p *Progress) End() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	<-p.ended
	p.stop = nil
}

// warnEvery is how close the lines of Warn come.
const warnEvery = 2 * time.Second

// Warn prints a line, also during a stage, and from any goroutine. Lines within two seconds
// of another are left out, so that a store that fails a thousand requests is one line.
func (p *Progress) Warn(text string) {
	now := time.Now().UnixNano()
	last := p.warned.Load()
	if p.quiet || last != 0 && now-last < int64(warnEvery) || !p.warned.CompareAndSwap(last, now) {
		return
	}
	p.Print(text)
}

// Print prints a line as Warn does, however many come.
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

// Note prints lines, unless the Progress is quiet. There must be no stage.
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
