package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := newLines(&out, "tool", "writing", 1000, "images")
	at := l.begin
	steps := []struct {
		after time.Duration
		done  int64
		want  string
	}{
		{time.Second, 300, ""}, // three tenths, but it was just begun
		{2 * time.Second, 310, "tool: writing: 310 of 1,000 images (31 %), 155/s, 4.5 s left\n"},
		{3 * time.Second, 390, ""},
		{11 * time.Second, 395, ""}, // same tenth
		{12 * time.Second, 396, "tool: writing: 396 of 1,000 images (39 %), 33/s, 18.3 s left\n"},
		{14 * time.Second, 400, "tool: writing: 400 of 1,000 images (40 %), 29/s, 21.0 s left\n"},
	}
	for _, s := range steps {
		out.Reset()
		l.showAt(at.Add(s.after), s.done)
		if out.String() != s.want {
			t.Errorf("after %v with %d done: %q, want %q", s.after, s.done, out.String(), s.want)
		}
	}
	out.Reset()
	l.finish(1000, 20*time.Second)
	if want := "tool: writing: 1,000 of 1,000 images (100 %), 50/s\n"; out.String() != want {
		t.Errorf("at the end: %q, want %q", out.String(), want)
	}
}

func TestLinesOfUnknownLength(t *testing.T) {
	var out bytes.Buffer
	l := newLines(&out, "tool", "writing", -1, "images")
	l.showAt(l.begin.Add(9*time.Second), 5000)
	l.showAt(l.begin.Add(10*time.Second), 6000)
	if want := "tool: writing: 6,000 images, 600/s\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "tool", false)
	p.End() // nothing was begun
	for _, what := range []string{"measuring", "writing"} {
		p.Begin(what, 100, "images")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 25 {
					p.Add(1)
				}
			})
		}
		wg.Wait()
		p.End()
	}
	if s := out.String(); strings.Count(s, "100 of 100 images (100 %)") != 2 || strings.Index(s, "measuring") > strings.Index(s, "writing") {
		t.Errorf("printed %q", s)
	}
}

func TestNote(t *testing.T) {
	var out bytes.Buffer
	NewProgress(&out, "tool", false).Note("one\ntwo\x1b\n")
	if want := "tool: one\ntool: two\\x1b\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	out.Reset()
	NewProgress(&out, "tool", true).Note("one")
	NewProgress(&out, "tool", false).Note("")
	p := NewProgress(&out, "tool", false)
	for _, total := range []int64{-1, 100} {
		p.Begin("looking", total, "things")
		p.End() // nothing came
	}
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

func TestQuietProgress(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "tool", true)
	p.Begin("writing", 100, "images")
	p.Add(100)
	p.End()
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out, "writing", 200, "images")
	b.show(50)
	if s := out.String(); !strings.Contains(s, "writing") || !strings.Contains(s, "25%") || !strings.Contains(s, "50/200") {
		t.Errorf("drew %q", s)
	}
	b.finish(200, time.Second)
	if s := out.String(); strings.Contains(s, "\n") || !strings.HasSuffix(s, "\r") {
		t.Errorf("left %q", s)
	}
}

// A bar that has ended draws nothing over the one that comes after it, nor does one without
// an end in sight.
func TestBarEnds(t *testing.T) {
	for _, total := range []int64{-1, 100} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			b := newBar(&out, "looking", total, "images")
			for done := range int64(20) {
				time.Sleep(b.every())
				b.show(done)
			}
			if !strings.Contains(out.String(), "looking") {
				t.Errorf("drew %q", out.String())
			}
			b.finish(20, time.Second)
			out.Reset()
			time.Sleep(time.Second)
			if out.Len() > 0 {
				t.Errorf("of %d, a bar that has ended drew %.100q", total, out.String())
			}
		})
	}
}
