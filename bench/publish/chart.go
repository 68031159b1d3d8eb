package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/chart"
	"github.com/penstock/penstock/internal/units"
)

// panel is the bars of a table, whose rows may be the rows of one set alone.
type panel struct {
	title, program, head string
	column, set          string
	less                 bool // less is better
}

// inGo is the row of the Go loader, and its name in charts: the other rows of its tables were measured in Python.
const inGo, inGoChart = "penstock, default", "penstock in Go"

const rate, perRecord = "records/s", "us of CPU"

func peers(title, head string) panel { return panel{title, "peers", head, rate, "", false} }

func loaders(title, head string) panel { return panel{title, "loader", head, rate, "", false} }

// speed is the README's chart: from where penstock is furthest ahead to where a loop with NumPy is level.
var speed = []panel{
	peers("Mirrored and normalized to float32", "150,528 B, shuffled, mirrored and normalized to float32"),
	peers("150,528 bytes as stored", "150,528 B, shuffled, batches of 64"),
	peers("784 bytes as stored", "784 B, shuffled, batches of 256"),
}

// drawings are the charts of docs/benchmarks.md, one for each of its main tables.
var drawings = map[string]panel{
	"chart-decode.svg": {"JPEG to 224x224 float32: microseconds a photo", "transforms", peersHead, "us/photo", "photos",
		true},
	"chart-small.svg": loaders("784 bytes, penstock in Go: records per second", touched("shuffled", "784")),
	"chart-large.svg": loaders("150,528 bytes, penstock in Go: records per second", touched("shuffled", "150528")),
	"chart-normalize.svg": loaders("Normalized, penstock in Go: records per second",
		"shuffled, 150528-byte records, normalize"),
	"chart-loaders.svg": peers("150,528 bytes, not changed: records per second",
		"150,528 B, shuffled, batches of 64"),
	"chart-loaders-normalize.svg": peers("150,528 bytes, normalized: records per second",
		"150,528 B, shuffled, mirrored and normalized to float32"),
	"chart-loaders-small.svg": peers("784 bytes, not changed: records per second", "784 B, shuffled, batches of 256"),
	"chart-loaders-gzip.svg": peers("150,528 bytes in gzip: records per second",
		"150,528 B a gzip chunk (HDF5, Zarr), shuffled, batches of 64"),
}

// charts returns all charts by their files.
func (r results) charts() (map[string]string, error) {
	files := make(map[string]string)
	for name, p := range drawings {
		bars, err := r.bars(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = chart.Draw(p.title, chart.Panel{Title: p.title, Rows: bars})
	}
	var panels []chart.Panel
	for _, p := range speed {
		bars, err := r.inPython(p)
		if err != nil {
			return nil, err
		}
		panels = append(panels, chart.Panel{Title: p.title, Rows: bars})
	}
	files["speed.svg"] = chart.Draw("Records per second in Python and microseconds of CPU a record, by loader", panels...)
	return files, nil
}

// inPython returns the rows of a table of bench/peers that were measured in Python, with the CPU time of a record.
func (r results) inPython(p panel) ([]chart.Row, error) {
	bars, err := r.bars(p)
	if err != nil {
		return nil, err
	}
	bars = slices.DeleteFunc(bars, func(b chart.Row) bool { return b.Name == inGoChart })
	for i := range bars {
		cpu, err := r.number(figure{program: p.program, head: p.head, rows: []string{bars[i].Name}, column: perRecord})
		if err != nil {
			return nil, err
		}
		bars[i].Text += fmt.Sprintf(", %s µs", digits(cpu))
	}
	return bars, nil
}

// bars returns the rows of a panel's table, the best first.
func (r results) bars(p panel) ([]chart.Row, error) {
	t, err := r.table(p.program, p.head)
	if err != nil {
		return nil, err
	}
	at := slices.Index(t.cells[0], p.column)
	if at < 0 {
		return nil, fmt.Errorf("the table %q has no column %q", p.head, p.column)
	}
	var bars []chart.Row
	for _, row := range t.cells[1:] {
		if p.set != "" && row[1] != p.set {
			continue
		}
		n, err := leading(row[at])
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", row[0], err)
		}
		bars = append(bars, chart.Row{Name: strings.Replace(row[0], inGo, inGoChart, 1), Value: n, Text: thousands(n),
			Marked: strings.HasPrefix(row[0], "penstock")})
	}
	if len(bars) == 0 {
		return nil, fmt.Errorf("the table %q has no row of %q", p.head, p.set)
	}
	slices.SortStableFunc(bars, func(a, b chart.Row) int {
		if p.less {
			return cmp.Compare(a.Value, b.Value)
		}
		return cmp.Compare(b.Value, a.Value)
	})
	return bars, nil
}

func thousands(n float64) string { return units.Count(int64(math.Round(n))) }
