package main

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// panel is a group of bars of the README's chart: the rows of a table of bench/peers that were measured in Python.
type panel struct{ title, head string }

// panels are the README's chart: from where penstock is furthest ahead to where a loop with NumPy is level.
var panels = []panel{
	{"Mirrored and normalized to float32", "150,528 B, shuffled, mirrored and normalized to float32"},
	{"150,528 bytes as stored", "150,528 B, shuffled, batches of 64"},
	{"784 bytes as stored", "784 B, shuffled, batches of 256"},
}

// Sizes of charts, in pixels. They are as narrow as is possible: a phone shows them with 340.
const (
	chartWidth  = 480
	chartLabels = 150 // of the names, left of the bars
	chartValues = 96  // of the numbers, right of them
	chartCPU    = 36  // of the microseconds behind a number
	chartRow    = 24
	chartTall   = 40 // of a row whose name is above its bar
)

const chartStyle = `<style>text{font:14px system-ui,sans-serif;fill:#24292f}.h{font-weight:600}` +
	`.b{fill:#8c959f}.p{fill:#3f51b5}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#6e7681}.p{fill:#8c9eff}}</style>`

// chart returns the README's chart as SVG: records per second that a loop in Python gets and the CPU time of each, by
// loader, the fastest first.
func (r results) chart() (string, error) {
	var b strings.Builder
	y := 0
	for _, p := range panels {
		bars, err := r.inPython(p.head)
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
	return svg("Records per second in Python and microseconds of CPU a record, by loader", b.String(), y), nil
}

// inPython returns the rows of a table of bench/peers that were measured in Python, the fastest first.
func (r results) inPython(head string) ([]bar, error) {
	bars, err := r.bars(drawing{program: "peers", head: head, column: rate})
	if err != nil {
		return nil, err
	}
	bars = slices.DeleteFunc(bars, func(b bar) bool { return b.name == inGo })
	for i := range bars {
		bars[i].cpu, err = r.number(figure{program: "peers", head: head, rows: []string{bars[i].name}, column: perRecord})
		if err != nil {
			return nil, err
		}
	}
	return bars, nil
}

// drawing is the chart of a table of docs/benchmarks.md.
type drawing struct {
	file, title   string
	program, head string
	column, only  string // only: the rows whose second cell is this one
	less          bool   // less is better
}

const rate, perRecord, perPhoto = "records/s", "us of CPU", "us/photo"

// inGo is the row of the Go loader, and its name in charts: the other rows of its tables were measured in Python.
const inGo, inGoChart = "penstock, default", "penstock in Go"

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
	bars, err := r.bars(d)
	if err != nil {
		return "", err
	}
	most := slices.MaxFunc(bars, func(a, b bar) int { return cmp.Compare(a.rate, b.rate) }).rate
	var b strings.Builder
	y := heading(&b, 0, d.title)
	for _, bar := range bars {
		name := strings.Replace(bar.name, inGo, inGoChart, 1)
		fmt.Fprintf(&b, "<text x=\"0\" y=\"%d\">%s</text>", y+14, html.EscapeString(name))
		bar.draw(&b, 0, y+18, bar.rate/most)
		y += chartTall
	}
	return svg(d.title, b.String(), y), nil
}

// bars returns the rows of a drawing's table, the best first.
func (r results) bars(d drawing) ([]bar, error) {
	t, err := r.table(d.program, d.head)
	if err != nil {
		return nil, err
	}
	at := slices.Index(t.cells[0], d.column)
	if at < 0 {
		return nil, fmt.Errorf("%s: the table %q has no column %q", d.file, d.head, d.column)
	}
	var bars []bar
	for _, row := range t.cells[1:] {
		if d.only != "" && row[1] != d.only {
			continue
		}
		n, err := leading(row[at])
		if err != nil {
			return nil, fmt.Errorf("%s: row %q: %w", d.file, row[0], err)
		}
		bars = append(bars, bar{name: row[0], setting: row[1], rate: n})
	}
	if len(bars) == 0 {
		return nil, fmt.Errorf("%s: the table %q has no row of %q", d.file, d.head, d.only)
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		if d.less {
			return cmp.Compare(a.rate, b.rate)
		}
		return cmp.Compare(b.rate, a.rate)
	})
	return bars, nil
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
	value, room := thousands(bar.rate), chartWidth-x-chartValues
	if bar.cpu > 0 {
		value += fmt.Sprintf(", %s µs", digits(bar.cpu))
		room -= chartCPU
	}
	width := part * float64(room)
	fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"16\"/>", class, x, y+2, max(width, 1))
	fmt.Fprintf(b, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", float64(x)+width+6, y+14, value)
}

func svg(label, body string, height int) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "+
		"viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n%s\n%s</svg>\n",
		chartWidth, height, chartWidth, height, html.EscapeString(label), chartStyle, body)
}

// bar is a row of a table.
type bar struct {
	name, setting string
	rate          float64
	cpu           float64 // microseconds of CPU a record; 0 if the chart does not show them
}

// thousands returns a number as people write it: 35,901.
func thousands(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
