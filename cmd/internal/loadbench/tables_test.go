package loadbench

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/sampler"
)

func TestGuideLogsEveryBatchOfEveryEpoch(t *testing.T) {
	for _, ending := range logFormats {
		o := small()
		o.Tables, o.Work, o.TrainStep, o.Epochs, o.Batches = []string{tableGuide}, workReplay, 200*time.Microsecond, 3, 4
		o.Log = filepath.Join(t.TempDir(), "waits"+ending)
		r, err := Run(t.Context(), o, silent{})
		require.NoError(t, err)
		rows := r.Tables[0].Rows
		for _, row := range rows {
			if row.Batches != 3*4 || len(row.Epochs) != 3 || row.epochs() > row.Total || row.Total < 12*o.TrainStep {
				t.Errorf("%s: %d batches, epochs %v of %v", row.Name, row.Batches, row.Epochs, row.Total)
			}
		}
		lines := readLog(t, o.Log)
		if len(lines) != 12*len(rows) {
			t.Fatalf("%d lines for %d rows", len(lines), len(rows))
		}
		if last := lines[len(lines)-1]; last.Table != "guide-replay" || last.Epoch != 2 || last.Batch != 3 || last.Records != 4 || last.Body < 200e-6 || last.At <= last.Wait {
			t.Errorf("%+v", last)
		}
	}
}

func readLog(t *testing.T, path string) (lines []logLine) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	if filepath.Ext(path) == ".jsonl" {
		for d := json.NewDecoder(f); d.More(); {
			var line logLine
			require.NoError(t, d.Decode(&line))
			lines = append(lines, line)
		}
		return lines
	}
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || !slices.Equal(all[0], logHead) {
		t.Fatalf("%v, %v", all, err)
	}
	for _, cells := range all[1:] {
		var line logLine
		line.Table, line.Row = cells[0], cells[1]
		numbers := strings.Join(cells[2:], ",")
		var n [6]float64
		if err := json.Unmarshal([]byte("["+numbers+"]"), &n); err != nil {
			t.Fatal(numbers, err)
		}
		line.Epoch, line.Batch, line.Records, line.At, line.Wait, line.Body = int(n[0]), int(n[1]), int(n[2]), n[3], n[4], n[5]
		lines = append(lines, line)
	}
	return lines
}

func TestSweepsVaryOneThing(t *testing.T) {
	o := small()
	o.Work, o.Tables, o.Size = workSleep, []string{tableBatch, tableWorkers, tablePrefetch}, 200
	r, err := Run(t.Context(), o, silent{})
	require.NoError(t, err)
	if len(r.Tables) != 3 {
		t.Fatalf("%d tables", len(r.Tables))
	}
	values := map[string][]int{tableBatch: {16, 32, 64, 128}, tableWorkers: {0, 1, 2, 4, 8, 16}, tablePrefetch: {1, 2, 4, 8, 16}}
	for _, table := range r.Tables {
		var got []int
		for _, row := range table.Rows {
			if !row.Ran() || row.Batches < 2 {
				t.Errorf("%s %s: %d batches, %s", table.Name, row.Name, row.Batches, row.Unavailable)
			}
			got = append(got, map[string]int{tableBatch: row.Batch, tableWorkers: row.Workers, tablePrefetch: row.Prefetch}[table.Name])
		}
		if want := values[table.Name]; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", table.Name, got, want)
		}
	}
}

func TestScaleScalesTimes(t *testing.T) {
	o := Options{Delay: time.Second, TrainStep: 2 * time.Second, Scale: 0.1, Quick: true, Batches: 160}
	s := o.scaled()
	if s.Delay != 100*time.Millisecond || s.TrainStep != 200*time.Millisecond || s.scaled().Delay != s.Delay {
		t.Errorf("%+v", s)
	}
	if text := o.shorten(); o.Batches != 20 || !strings.Contains(text, "--scale 0.1") || !strings.Contains(text, "--quick: 20 batches") {
		t.Errorf("%q, %+v", text, o)
	}
}

func TestCappedEpochsAreTheStartOfWhole(t *testing.T) {
	whole := sampler.Shuffle{}.Epoch(100, 7, 3)
	short := capped{sampler.Shuffle{}, 10}.Epoch(100, 7, 3)
	a, b := make([]int, 10), make([]int, 10)
	whole.Fill(0, a)
	short.Fill(0, b)
	if short.Len() != 10 || !slices.Equal(a, b) {
		t.Errorf("%d: %v, want %v", short.Len(), b, a)
	}
	if n := (capped{sampler.Shuffle{}, 1000}).Epoch(100, 7, 3).Len(); n != 100 {
		t.Errorf("%d records of 100", n)
	}
}

func TestBaselineAgainstBest(t *testing.T) {
	row := func(name string, total time.Duration) Result {
		return Result{Name: name, Total: total, Epochs: []time.Duration{total / 2}, FirstBatch: total / 10, Batches: 1, Records: 10, Wait: Waits{Mean: total / 20}}
	}
	table := Table{Rows: []Result{{Unavailable: "no"}, row("baseline", 20*time.Second), row("b", 10*time.Second), row("c", 2*time.Second), row("d", 4*time.Second)}}
	want := "c against baseline: mean wait 1.00 s to 100 ms (10.0x), first batch 2.00 s to 200 ms, epochs 10.0 s to 1.00 s (10.00x), the whole run 20.0 s to 2.00 s (10.00x)."
	if got := table.against(); got != want {
		t.Errorf("%s", got)
	}
	table.Rows = table.Rows[:2]
	if got := table.against(); got != "No row is faster than baseline." {
		t.Errorf("%s", got)
	}
	table.Rows = table.Rows[:1]
	if got := table.against(); got != "" {
		t.Errorf("%s", got)
	}
}
