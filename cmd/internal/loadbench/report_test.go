package loadbench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"

	"github.com/penstock/penstock/internal/testkit/browser"
)

// example returns a report of every kind of table, without measuring.
func example() *Report {
	row := func(name string, scale time.Duration) Result {
		r := Result{Name: name, Total: 100 * scale, FirstBatch: scale, Batches: 40, Records: 400, Bytes: 40000, SpeedUp: 2, Step: 1, Limit: .5,
			Epochs: []time.Duration{99 * scale}, Busy: Busy{Read: scale, Transform: 5 * scale, Idle: 3 * scale}, Diagnosis: "train-bound: <b>"}
		for i := range 40 {
			r.Waits = append(r.Waits, time.Duration(i%7)*scale)
		}
		r.Wait = waitsOf(r.Waits)
		return r
	}
	rows := []Result{row("baseline", 50*time.Millisecond), row("+ workers & <prefetch>", 10*time.Millisecond),
		{Name: "+ device prefetch", Unavailable: "no CUDA device"}, row("+ zero-copy", 100*time.Microsecond)}
	for i := range rows {
		rows[i].Published = &tutorial[i]
	}
	return &Report{Dataset: Dataset{Name: "a <dataset>", Records: 400, RecordBytes: 100, Fields: []string{"x uint8 (100)"}},
		Machine: Machine{Cores: 2, OS: "linux", Arch: "amd64", Go: "go", Memcpy: 1e10, Read: 2e10, Pread: 1e9, Fault: 300, Resident: .5},
		Tables: []Table{{Name: "progressive-sleep", Title: "row by row", Rows: rows, Notes: []string{"a note"}},
			{Name: "guide-sleep", Title: strings.Repeat("waiting for batches ", 8), Rows: rows, guide: true},
			{Name: "batch", Title: "varied: batch", Rows: rows, vary: "batch"},
			{Name: "rows", Title: "nothing ran", Rows: rows[2:3]}},
		Bottleneck: "train-bound: <b>", Interrupted: true}
}

func TestPageFetchesNothingAndHasItsPlots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := example().WriteHTML(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if n := strings.Count(page, "<svg"); n != 3*4 {
		t.Errorf("%d plots", n)
	}
	for _, want := range []string{"name=\"viewport\"", "prefers-color-scheme: dark", "a &lt;dataset&gt;", "train-bound: &lt;b&gt;", "wait per batch",
		"percentiles of the waits", "how workers spend their time", "records a second by batch", "not available: no CUDA device", "interrupted", "published, on another machine"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(?i)(<script|<img|<iframe|@import|url\(|(src|href)="?(https?:)?//)`).FindString(page); found != "" {
		t.Errorf("the page fetches: %q", found)
	}
	if strings.Contains(page, "<prefetch>") {
		t.Error("a name is not escaped in a plot")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPlots(t *testing.T) {
	dir := t.TempDir()
	if err := example().WritePlot(filepath.Join(dir, "p.svg")); err != nil {
		t.Fatal(err)
	}
	svg, err := os.Open(filepath.Join(dir, "p.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer svg.Close()
	texts := 0
	for d := xml.NewDecoder(svg); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			texts++
			fitted := slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "textLength" && a.Value > "0" })
			if !fitted {
				t.Errorf("a text takes the width that a browser's font gives it: %v", e.Attr)
			}
		}
	}
	if texts < 20 {
		t.Errorf("%d text elements in the SVG", texts)
	}
	if err := example().WritePlot(filepath.Join(dir, "p.png")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "p.png"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Dx() != 960 || img.Bounds().Dy() < 3*520 {
		t.Errorf("%v, %v", err, img.Bounds())
	}
	if err := (&Report{}).WritePlot(filepath.Join(dir, "none.png")); err == nil {
		t.Error("a plot of nothing")
	}
	if err := example().WritePlot(filepath.Join(dir, "no", "p.png")); err == nil {
		t.Error("a plot in a folder that is not there")
	}
}

func TestPageInABrowser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loadbench.html")
	if err := example().WriteHTML(path); err != nil {
		t.Fatal(err)
	}
	browser.CheckPage(t, path, 3*4)
}

func TestTicks(t *testing.T) {
	labels := func(ticks []plot.Tick) (all []string) {
		for _, tick := range ticks {
			if tick.Label != "" {
				all = append(all, tick.Label)
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		ticks []plot.Tick
		want  string
	}{
		"times":  {decades{}.Ticks(1e-6, 10), "1 us 10 us 100 us 1 ms 10 ms 100 ms 1 s 10 s"},
		"rates":  {plain{}.Ticks(10, 1e4), "10 100 1,000 10,000"},
		"counts": {wholes{}.Ticks(0, 4), "0 2 4"},
	} {
		if got := strings.Join(labels(c.ticks), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := example().Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n| progressive-sleep | total |", "\n| --- | ---: |", "\n| + device prefetch | n/a |  |", "\n| guide-sleep | total | speed-up |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for _, line := range lines {
			if strings.HasPrefix(line, "|") && strings.Count(line, " | ") != strings.Count(lines[0], " | ") {
				t.Errorf("%q has other columns than %q", line, lines[0])
			}
		}
	}
}
