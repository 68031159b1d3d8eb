package loadbench

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// labeled makes a dataset whose record i has the label of label(i).
func labeled(t *testing.T, n int, classes []string, dtype tensor.DType, label func(i int) byte) *mmapds.Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	f := store.NewField("labels", dtype)
	f.Classes = classes
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float32, 8), f}}
	w, err := flat.Create(path, schema, flat.Options{})
	require.NoError(t, err)
	defer w.Close()
	record := store.NewRecord(schema)
	for i := range n {
		record.Values[1][0] = label(i)
		require.NoError(t, w.Append(record))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return ds
}

// A dataset in the order of its classes is found, with names of classes and without; mixed ones are not.
func TestLabelOrder(t *testing.T) {
	names := strings.Split("abcdefghij", "")
	for _, c := range []struct {
		name    string
		classes []string
		dtype   tensor.DType
		label   func(i int) byte
		ordered bool
	}{
		{"folders", names, tensor.Int64, func(i int) byte { return byte(i / 200) }, true},
		{"numbers", nil, tensor.Uint8, func(i int) byte { return byte(i / 200) }, true},
		{"mixed", names, tensor.Int64, func(i int) byte { return byte(i * 7919 / 13 % 10) }, false},
		{"one class", names, tensor.Int64, func(int) byte { return 3 }, false},
	} {
		text, err := labelOrder(t.Context(), labeled(t, 2000, c.classes, c.dtype, c.label), 32)
		if err != nil || (text != "") != c.ordered {
			t.Errorf("%s: %q, %v", c.name, text, err)
		}
		if c.ordered && !strings.Contains(text, "records are in the order of labels: 32 neighbors have 1.") {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

// The setting to copy is the fastest in a full shuffle: faster rows in another order would train another model.
func TestSettingShuffles(t *testing.T) {
	row := func(order string, records int) Result {
		return Result{Name: order, Sampler: order, Batch: 32, Batches: 40, Records: records, Total: 100, Workers: 2, Prefetch: 4}
	}
	r := Report{Dataset: Dataset{Name: "ds"}, Tables: []Table{{Rows: []Result{row("shuffle", 300), row("shuffle[:640]", 400),
		row("block(32)", 4000), row("sequential", 40000), row(chunkShuffle, 40000)}}}}
	s := r.setting()
	if s == nil || s.Python != `penstock.DataLoader("ds", 32, shuffle=True, num_workers=2, prefetch_factor=2)` ||
		s.Go != "loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Workers: 2, Prefetch: 4}" || !strings.HasPrefix(s.Row, "shuffle[:640]") {
		t.Errorf("%+v", s)
	}
	r.Tables[0].Rows = r.Tables[0].Rows[2:]
	if s := r.setting(); s != nil {
		t.Errorf("without a shuffled row: %+v", s)
	}
}

// The share of waiting in a row of the guide is the share in the verdict of that row: neither has the start of an epoch.
func TestWaitingIsOneNumber(t *testing.T) {
	r := Result{Name: "row", Total: 2 * time.Second, Wait: Waits{Sum: time.Second}}
	for range 2 { // two loaders, of an epoch each
		r.takeStats(loader.Stats{Batches: 100, Cores: 2, Workers: 2, Prefetch: 4, Wait: 500 * time.Millisecond, Starts: 460 * time.Millisecond,
			Body: 960 * time.Millisecond, Idle: 900 * time.Millisecond})
	}
	if cells := r.guideCells(); cells[9] != "4 %" || !strings.Contains(r.Diagnosis, "waits 4 % of the time") {
		t.Errorf("the table has %s, and the verdict is %s", cells[9], r.Diagnosis)
	}
}
