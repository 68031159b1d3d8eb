package loadbench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// silent is Progress that nobody sees; at the begin of a stage of that name it calls f.
type silent struct {
	at string
	f  func()
}

func (s silent) Begin(what string, _ int64, _ string) {
	if s.f != nil && what == s.at {
		s.f()
	}
}
func (silent) Add(int64) {}
func (silent) End()      {}

// small returns a run of a few milliseconds.
func small() Options {
	o := Defaults()
	o.Synthetic, o.Size, o.Shape, o.Delay, o.Batch, o.Batches, o.Workers, o.Prefetch = true, 24, tensor.Shape{3, 8, 8}, 100*time.Microsecond, 4, 12, 2, 1
	return o
}

func TestProgressiveTableOfSyntheticData(t *testing.T) {
	r, err := Run(t.Context(), small(), silent{})
	require.NoError(t, err)
	if len(r.Tables) != 2 || r.Tables[0].Name != "progressive-sleep" || r.Tables[1].Name != "progressive-cpu" {
		t.Fatalf("tables %+v", r.Tables)
	}
	for _, table := range r.Tables {
		if len(table.Rows) != 8 {
			t.Fatalf("%s has %d rows", table.Name, len(table.Rows))
		}
		for i, row := range table.Rows {
			if !row.Ran() {
				if i != 2 && i != 4 {
					t.Errorf("%s: %s", row.Name, row.Unavailable)
				}
				continue
			}
			checkRow(t, row)
		}
		if zero := table.Rows[7]; zero.Copied != 0 || zero.Sampler != "block(4)" {
			t.Errorf("zero-copy row copied %d bytes in order %s", zero.Copied, zero.Sampler)
		}
		if base := table.Rows[0]; base.Workers != 0 || base.SpeedUp != 1 {
			t.Errorf("baseline has %d workers, %vx", base.Workers, base.SpeedUp)
		}
	}
	if r.Bottleneck == "" || r.Machine.Memcpy <= 0 || r.Machine.Read <= 0 || r.Machine.Generate <= 0 {
		t.Errorf("bottleneck %q, machine %+v", r.Bottleneck, r.Machine)
	}
}

func checkRow(t *testing.T, row Result) {
	t.Helper()
	if row.Batches != 12 || row.Records != 48 || len(row.Waits) != 12 {
		t.Errorf("%s: %d batches, %d records, %d waits", row.Name, row.Batches, row.Records, len(row.Waits))
	}
	if min(row.Bytes, int64(row.Total), int64(row.FirstBatch)) <= 0 || row.Bytes < 48*4*3*8*8 {
		t.Errorf("%s: %d bytes in %v, first after %v", row.Name, row.Bytes, row.Total, row.FirstBatch)
	}
	if row.SpeedUp <= 0 || row.Step <= 0 || row.Limit <= 0 || row.Diagnosis == "" {
		t.Errorf("%s: %+v", row.Name, row)
	}
	if w := row.Wait; w.P50 > w.P95 || w.P95 > w.P99 || w.P99 > w.Max || w.Sum > row.Total {
		t.Errorf("%s: waits %+v", row.Name, w)
	}
}

// makeDataset writes n records of size bytes, and text of various lengths if ragged.
func makeDataset(t *testing.T, n, size int, ragged bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, size)}}
	if ragged {
		schema.Fields = []store.Field{store.NewRagged("text", tensor.Uint8)}
	}
	w, err := flat.Create(path, schema, flat.Options{})
	require.NoError(t, err)
	datasettest.Write(t, w, schema, n, store.Info{}, func(i int, r *store.Record) {
		if ragged {
			r.Values[0] = make([]byte, i%5)
		}
	})
	return path
}

func TestDatasets(t *testing.T) {
	for name, c := range map[string]struct {
		n, size int
		ragged  bool
		rows    int
	}{
		"one record":      {1, 100, false, 7},
		"bytes":           {1000, 1, false, 7},
		"images":          {50, 3 * 16 * 16, false, 7},
		"variable length": {50, 0, true, 7},
	} {
		t.Run(name, func(t *testing.T) {
			o := Defaults()
			o.Path, o.Delay, o.Batches, o.Batch = makeDataset(t, c.n, c.size, c.ragged), 0, 10, 16
			r, err := Run(t.Context(), o, silent{})
			require.NoError(t, err)
			if !strings.Contains(r.Cache, "read into memory before") {
				t.Errorf("cache: %s", r.Cache)
			}
			if len(r.Tables) != 1 || len(r.Tables[0].Rows) != c.rows {
				t.Fatalf("%+v", r.Tables)
			}
			ran := 0
			for _, row := range r.Tables[0].Rows {
				if row.Ran() {
					ran++
				}
				if row.Ran() && (row.Batches != 10 || !c.ragged && int64(row.Records*c.size) != row.Bytes) {
					t.Errorf("%s: %d batches, %d records, %d bytes", row.Name, row.Batches, row.Records, row.Bytes)
				}
			}
			if ran < c.rows-2 { // pages may not be locked, and there may be no device
				t.Errorf("%d rows ran", ran)
			}
		})
	}
}

func TestACacheThatIsTooSmallIsToldFirst(t *testing.T) {
	o := Defaults()
	o.Path, o.Cache.Dir, o.Cache.Size = "file://"+filepath.ToSlash(makeDataset(t, 50, 100_000, false)), t.TempDir(), 1<<20
	_, err := Run(t.Context(), o, silent{})
	if err != nil && strings.Contains(err.Error(), "-tags nocloud") {
		t.Skipf("no URLs in this build: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "--cache-size) to") {
		t.Errorf("got %v, want an error that names the cache size", err)
	}
}

func TestDelayOnADatasetAddsThePrecomputedRows(t *testing.T) {
	o := Defaults()
	o.Path, o.Delay, o.Batches, o.Work = makeDataset(t, 40, 64, false), 50*time.Microsecond, 5, workCPU
	r, err := Run(t.Context(), o, silent{})
	require.NoError(t, err)
	rows := r.Tables[0].Rows
	if len(rows) != 8 || !rows[6].Ran() || rows[0].Busy.Transform == 0 || rows[6].Busy.Transform != 0 {
		t.Errorf("%+v", rows)
	}
	o.Path = makeDataset(t, 10, 0, true)
	if _, err := Run(t.Context(), o, silent{}); err == nil || !strings.Contains(err.Error(), "--delay needs") {
		t.Errorf("variable length and a delay: %v", err)
	}
}

func TestBudgetTooSmallIsSaidByEveryRowThatNeedsBuffers(t *testing.T) {
	o := Defaults()
	o.Path, o.Delay, o.Budget, o.Batches, o.Batch = makeDataset(t, 8, 4096, false), 0, 1000, 4, 2
	r, err := Run(t.Context(), o, silent{})
	require.NoError(t, err)
	rows := r.Tables[0].Rows
	if rows[0].Ran() || !strings.Contains(rows[0].Unavailable, "Budget") || !rows[6].Ran() {
		t.Errorf("%+v", rows)
	}
}

func TestInterruptedRunsKeepTheirRows(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := small()
	r, err := Run(ctx, o, silent{at: "+ persistent", f: cancel})
	if !errors.Is(err, context.Canceled) || r == nil || !r.Interrupted {
		t.Fatalf("%v, %+v", err, r)
	}
	if len(r.Tables) != 1 || len(r.Tables[0].Rows) != 3 {
		t.Errorf("%+v", r.Tables)
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "partial") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestReportIsJSON(t *testing.T) {
	r := Report{Tables: []Table{{Rows: []Result{{Name: "a", Total: 5}}}}}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"total_ns":5`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestSpeedUpsSkipRowsThatDidNotRun(t *testing.T) {
	table := Table{}
	for _, r := range []Result{{Records: 10, Total: 10}, {Unavailable: "no"}, {Records: 10, Total: 5}, {Records: 10, Total: 1}} {
		r.Total *= time.Duration(time.Second)
		table.Rows = append(table.Rows, r)
		table.compare()
	}
	for i, want := range [][2]float64{{1, 1}, {0, 0}, {2, 2}, {10, 5}} {
		if got := table.Rows[i]; got.SpeedUp != want[0] || got.Step != want[1] {
			t.Errorf("row %d: %v, %v", i, got.SpeedUp, got.Step)
		}
	}
	if table.best(0) != &table.Rows[3] || table.best(1) != nil {
		t.Errorf("best %+v", table.best(0))
	}
}

func TestWaits(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	if w := waitsOf(all); w.P50 != 101 || w.P95 != 191 || w.P99 != 199 || w.Max != 200 || w.Mean != 100 {
		t.Errorf("%+v", w)
	}
	if w := waitsOf(nil); w != (Waits{}) {
		t.Errorf("%+v", w)
	}
}

func TestLeastTime(t *testing.T) {
	m := &Machine{Cores: 2, Memcpy: 1e9, Read: 1e9, Generate: 1e8}
	r := Result{Records: 100, Batches: 10, Bytes: 1e9, Workers: 4}
	for _, c := range []struct {
		f       floor
		workers int
		want    float64
	}{
		{floor{delay: time.Second, sleeps: true}, 0, 100 + 1 + 1},
		{floor{delay: time.Second, sleeps: true}, 4, 25 + .5},
		{floor{delay: time.Second}, 4, 50.5},
		{floor{delay: time.Second, once: true}, 4, 5.5},
		{floor{makes: true}, 4, 5},
		{floor{views: true}, 4, 1},
	} {
		r.Workers = c.workers
		s := setup{floor: c.f}
		if got := s.least(&r, m).Seconds(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%+v, %d workers: %v, want %v", c.f, c.workers, got, c.want)
		}
	}
}

func TestShapes(t *testing.T) {
	if s, err := parseShape("3x224x224"); err != nil || s.Elems() != 3*224*224 {
		t.Errorf("%v, %v", s, err)
	}
	for _, wrong := range []string{"", "3x", "0", "-1", "3,4", "1x1x1x1x1x1x1x1", "65536x65536"} {
		if s, err := parseShape(wrong); err == nil {
			t.Errorf("%q: %v", wrong, s)
		}
	}
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{5: "5 ns", 1500: "1.50 us", 12 * time.Millisecond: "12.0 ms", 320 * time.Second: "320 s"} {
		if got := short(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestOthersOnTheMachineAreMentioned(t *testing.T) {
	for load, want := range map[string]bool{"": false, "0.10 3 4": false, "7.14 9.88 10.79": true} {
		m := Machine{Cores: 2, Load: load}
		if got := m.busy() != ""; got != want {
			t.Errorf("load %q: %q", load, m.busy())
		}
	}
}

func FuzzShape(f *testing.F) {
	f.Add("3x224x224")
	f.Add("0x1")
	f.Add("99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseShape(text)
		if err != nil {
			return
		}
		if n := s.Elems(); n < 1 || n > mostRecords || len(s) >= tensor.MaxRank {
			t.Errorf("%q: %v", text, s)
		}
	})
}

func TestShortRowsAreMentioned(t *testing.T) {
	table := Table{Rows: []Result{{Total: time.Second}, {Unavailable: "no"}}}
	if table.hasty() {
		t.Error("a second is said to be short")
	}
	table.Rows = append(table.Rows, Result{Total: time.Millisecond})
	var b strings.Builder
	if table.remarks(&b); !strings.Contains(b.String(), "more --batches") {
		t.Errorf("%s", b.String())
	}
}
