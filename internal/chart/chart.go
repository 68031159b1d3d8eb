// Package chart draws bars as SVG that follows the reader's dark mode and is narrow enough for a phone.
//
// A [Panel] is a title and rows, a [Row] a label and bars, and [Draw] puts panels below each other. loadbench, inspect
// report and the published benchmarks draw with it. It needs no library, and equal numbers give equal bytes, so that a
// chart in the repository changes only if its numbers do.
package chart

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/sys/shell"
)

// Row is a bar, with the text that follows it.
type Row struct {
	Name, Text string
	Value      float64
	Marked     bool // drawn in the accent color
}

// Panel is a group of bars on one scale.
type Panel struct {
	Title string
	Rows  []Row
}

// Sizes in pixels.
const (
	width     = 480
	heading   = 28
	line      = 24  // of a row whose name is left of its bar
	tall      = 40  // of a row whose name is above its bar
	margin    = 150 // of the names at the left
	character = 8   // more than any of the font takes on average
	below     = 12  // a panel
)

const style = `<style>text{font:14px system-ui,sans-serif;fill:#24292f}.h{font-weight:600}` +
	`.b{fill:#8c959f}.p{fill:#3f51b5}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#6e7681}.p{fill:#8c9eff}}</style>`

// Draw returns an SVG document of panels, one below the other. label describes the chart to screen readers.
func Draw(label string, panels ...Panel) string {
	var b strings.Builder
	y := 0
	for _, p := range panels {
		y = p.draw(&b, y) + below
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "+
		"viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n%s\n%s</svg>\n",
		width, y, width, y, escape(label), style, b.String())
}

// Bar returns an SVG element with a bar that takes value/most of its width. attributes place and style the element.
func Bar(value, most float64, attributes string) string {
	share := 0.0
	if most > 0 {
		share = 100 * value / most
	}
	return fmt.Sprintf(`<svg %s><rect width="%.2f%%" height="100%%"/></svg>`, attributes, share)
}

// draw writes a panel whose top is at y, and returns its bottom.
func (p Panel) draw(b *strings.Builder, y int) int {
	text(b, `class="h" `, 0, y+18, p.Title)
	b.WriteByte('\n')
	y += heading
	most, name, note := p.extent()
	left, height, down := margin, line, 0
	if name*character > margin {
		left, height, down = 0, tall, tall-line
	}
	room := width - left - note*character
	for _, r := range p.Rows {
		class := "b"
		if r.Marked {
			class = "p"
		}
		text(b, "", 0, y+14, r.Name)
		at := fmt.Sprintf(`class="%s" x="%d" y="%d" width="%d" height="16"`, class, left, y+down+2, room)
		b.WriteString(Bar(r.Value, most, at))
		end := left
		if most > 0 {
			end += int(float64(room) * r.Value / most)
		}
		text(b, "", end+6, y+down+14, r.Text)
		b.WriteByte('\n')
		y += height
	}
	return y
}

// extent returns the largest value, and the lengths of the longest name and text in characters.
func (p Panel) extent() (most float64, name, note int) {
	for _, r := range p.Rows {
		most = max(most, r.Value)
		name, note = max(name, utf8.RuneCountInString(r.Name)), max(note, utf8.RuneCountInString(r.Text)+1)
	}
	return most, name, note
}

func text(b *strings.Builder, attributes string, x, y int, s string) {
	fmt.Fprintf(b, `<text %sx="%d" y="%d">%s</text>`, attributes, x, y, escape(s))
}

// escape escapes control characters and the characters that have a meaning in SVG.
func escape(s string) string { return html.EscapeString(shell.Line(s)) }
