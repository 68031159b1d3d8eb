package loadbench

import (
	"path/filepath"
	"strings"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	record := store.NewRecord(schema)
	for i := range n {
		record.Values[1][0] = label(i)
		if err := w.Append(record); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	ds, err := mmapds.Open(path)
	if err != nil {
		t.Fatal(err)
	}
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

// The setting that is recommended for records in the order of their labels does not keep neighbors together.
func TestSettingLooksAtTheOrder(t *testing.T) {
	rows := []Result{{Name: "slow", Sampler: "shuffle[:640]", Batch: 32, Batches: 40, Records: 400, Total: 100, Epochs: nil},
		{Name: "fast", Sampler: "block(32)", Batch: 32, Batches: 40, Records: 40000, Total: 100}, {Name: "faster", Sampler: "sequential", Batch: 32, Batches: 40, Records: 400000, Total: 100}}
	r := Report{Dataset: Dataset{Name: "ds"}, Tables: []Table{{Rows: rows}}}
	for order, want := range map[string]string{"": "shuffle=False", "records are in the order of labels": "shuffle=True"} {
		r.Order = order
		s := r.setting()
		if s == nil || !strings.Contains(s.Python, want) {
			t.Errorf("order %q: %+v, want %s", order, s, want)
		}
	}
}
