package loadbench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
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

// Every table has a panel, and every row that ran a bar; a report without rows is an error.
func TestPlot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.svg")
	require.NoError(t, example().WritePlot(path))
	svg, err := os.ReadFile(path)
	require.NoError(t, err)
	for want, times := range map[string]int{
		"records a second<": 3, "+ workers &amp; &lt;prefetch&gt;<": 3, "+ device prefetch": 0, `class="p"`: 3, "a &lt;dataset&gt;": 1,
	} {
		if n := strings.Count(string(svg), want); n != times {
			t.Errorf("%q is in the chart %d times, want %d", want, n, times)
		}
	}
	if err := (&Report{}).WritePlot(filepath.Join(dir, "none.svg")); err == nil {
		t.Error("a plot of nothing")
	}
	if err := example().WritePlot(filepath.Join(dir, "no", "p.svg")); err == nil {
		t.Error("a plot in a folder that is not there")
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	require.NoError(t, example().Markdown(&b))
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
