package main

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// panel is a group of bars: rows of a table of bench/peers, all of them measured in Python.
type panel struct {
	title, head string
	rows        []string // what the first cells begin with
}

// panels are the README's chart: one where penstock is ahead, and one where it is not.
var panels = []panel{
	{"Mirrored and normalized to float32", "150,528 B, shuffled, mirrored and normalized to float32",
		[]string{"penstock in Python", "FFCV", "DALI", "Grain", "tf.data", "PyTorch DataLoader", "SPDL"}},
	{"As stored, not changed", "150,528 B, shuffled, batches of 64",
		[]string{"penstock in Python", "PyTorch DataLoader", "tf.data", "FFCV", "Grain", "DALI", "SPDL"}},
}

// Sizes of the chart, in pixels.
const (
	chartWidth  = 760
	chartLabels = 170 // of the names, left of the bars
	chartValues = 80  // of the numbers, right of them
	chartRow    = 24
)

const chartStyle = `<style>text{font:14px system-ui,sans-serif;fill:#24292f}.h{font-weight:600}` +
	`.b{fill:#8c959f}.p{fill:#3f51b5}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#6e7681}.p{fill:#8c9eff}}</style>`

// chart returns the README's chart as SVG: images per second that a loop in Python gets, by loader.
func (r results) chart() (string, error) {
	var b strings.Builder
	y := 0
	for _, p := range panels {
		bars, err := r.bars(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "<text class=\"h\" x=\"0\" y=\"%d\">%s</text>\n", y+18, html.EscapeString(p.title))
		y += chartRow + 4
		for _, bar := range bars {
			class := "b"
			if strings.HasPrefix(bar.name, "penstock") {
				class = "p"
			}
			width := bar.rate / bars[0].rate * (chartWidth - chartLabels - chartValues)
			fmt.Fprintf(&b, "<text x=\"0\" y=\"%d\">%s</text>", y+14, html.EscapeString(bar.name))
			fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"16\"/>",
				class, chartLabels, y+2, width)
			fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", chartLabels+width+6, y+14, thousands(bar.rate))
			y += chartRow
		}
		y += chartRow / 2
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "+
		"aria-label=\"Images per second in Python, by loader\">\n%s\n%s</svg>\n", chartWidth, y, chartStyle, &b), nil
}

// bar is a loader and the records per second that it yields.
type bar struct {
	name string
	rate float64
}

// bars returns the bars of a panel, the longest first.
func (r results) bars(p panel) ([]bar, error) {
	var list []bar
	for _, row := range p.rows {
		n, err := r.number(figure{program: "peers", head: p.head, rows: []string{row}, column: "records/s"})
		if err != nil {
			return nil, err
		}
		list = append(list, bar{row, n})
	}
	slices.SortFunc(list, func(a, b bar) int { return cmp.Compare(b.rate, a.rate) })
	return list, nil
}

// thousands returns a number as people write it: 35,901.
func thousands(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
