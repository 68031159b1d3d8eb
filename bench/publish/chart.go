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

// Sizes of charts, in pixels. They are as narrow as is possible: a phone shows them with 340.
const (
	chartWidth  = 480
	chartLabels = 150 // of the names, left of the bars
	chartValues = 96  // of the numbers, right of them
	chartRow    = 24
	chartTall   = 40 // of a row whose name is above its bar
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
		y = heading(&b, y, p.title)
		for _, bar := range bars {
			fmt.Fprintf(&b, "<text x=\"0\" y=\"%d\">%s</text>", y+14, html.EscapeString(bar.name))
			bar.draw(&b, chartLabels, y, bar.rate/bars[0].rate)
			y += chartRow
		}
		y += chartRow / 2
	}
	return svg("Images per second in Python, by loader", b.String(), y), nil
}

// drawing is the chart of a table of docs/benchmarks.md.
type drawing struct {
	file, title   string
	program, head string
	column, only  string // only: the rows whose second cell is this one
	less          bool   // less is better
}

const rate, perPhoto = "records/s", "us/photo"

// drawings are the charts of docs/benchmarks.md, one for each of its main tables.
var drawings = []drawing{
	{"chart-decode.svg", "JPEG to 224x224 float32: microseconds a photo", "transforms",
		"JPEG bytes to 224x224 float32 CHW, bilinear", perPhoto, "photos", true},
	{"chart-small.svg", "784 bytes, penstock in Go: records per second", "loader",
		touched("shuffled", "784"), rate, "", false},
	{"chart-large.svg", "150,528 bytes, penstock in Go: records per second", "loader",
		touched("shuffled", "150528"), rate, "", false},
	{"chart-normalize.svg", "Normalized, penstock in Go: records per second", "loader",
		"shuffled, 150528-byte records, normalize", rate, "", false},
	{"chart-python.svg", "150,528 bytes, in Python: records per second", "feeder", "150528-byte records", rate, "", false},
	{"chart-loaders.svg", "150,528 bytes, not changed: records per second", "peers",
		"150,528 B, shuffled, batches of 64", rate, "", false},
	{"chart-loaders-normalize.svg", "150,528 bytes, normalized: records per second", "peers",
		"150,528 B, shuffled, mirrored and normalized to float32", rate, "", false},
	{"chart-loaders-small.svg", "784 bytes, not changed: records per second", "peers",
		"784 B, shuffled, batches of 256", rate, "", false},
	{"chart-loaders-gzip.svg", "150,528 bytes in gzip: records per second", "peers",
		"150,528 B a gzip chunk (HDF5, Zarr), shuffled, batches of 64", rate, "", false},
}

// draw returns a chart as SVG, the best row first.
func (r results) draw(d drawing) (string, error) {
	t, err := r.table(d.program, d.head)
	if err != nil {
		return "", err
	}
	at := slices.Index(t.cells[0], d.column)
	if at < 0 {
		return "", fmt.Errorf("%s: the table %q has no column %q", d.file, d.head, d.column)
	}
	var bars []bar
	most := 0.0
	for _, row := range t.cells[1:] {
		if d.only != "" && row[1] != d.only {
			continue
		}
		n, err := leading(row[at])
		if err != nil {
			return "", fmt.Errorf("%s: row %q: %w", d.file, row[0], err)
		}
		bars, most = append(bars, bar{strings.Replace(row[0], "penstock, default", "penstock in Go", 1), n}), max(most, n)
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		if d.less {
			return cmp.Compare(a.rate, b.rate)
		}
		return cmp.Compare(b.rate, a.rate)
	})
	var b strings.Builder
	y := heading(&b, 0, d.title)
	for _, bar := range bars {
		fmt.Fprintf(&b, "<text x=\"0\" y=\"%d\">%s</text>", y+14, html.EscapeString(bar.name))
		bar.draw(&b, 0, y+18, bar.rate/most)
		y += chartTall
	}
	return svg(d.title, b.String(), y), nil
}

// heading writes the title of bars at y, and returns the place below it.
func heading(b *strings.Builder, y int, title string) int {
	fmt.Fprintf(b, "<text class=\"h\" x=\"0\" y=\"%d\">%s</text>\n", y+18, html.EscapeString(title))
	return y + chartRow + 4
}

// draw writes a bar that begins at x and has a part of the width that is left there, and its number.
func (bar bar) draw(b *strings.Builder, x, y int, part float64) {
	class := "b"
	if strings.HasPrefix(bar.name, "penstock") {
		class = "p"
	}
	width := part * float64(chartWidth-x-chartValues)
	fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"16\"/>", class, x, y+2, max(width, 1))
	fmt.Fprintf(b, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", float64(x)+width+6, y+14, thousands(bar.rate))
}

func svg(label, body string, height int) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "+
		"viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n%s\n%s</svg>\n",
		chartWidth, height, chartWidth, height, html.EscapeString(label), chartStyle, body)
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
