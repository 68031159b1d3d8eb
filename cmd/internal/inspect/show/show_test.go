package show

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

func shown(t *testing.T, path string, opts Options, spans ...string) (out []*Record) {
	t.Helper()
	err := Each(context.Background(), path, spans, opts, func(s *Record) error {
		out = append(out, s)
		return nil
	})
	require.NoError(t, err)
	return out
}

func TestShowValues(t *testing.T) {
	got := shown(t, datasettest.Animals(t), Options{Elements: 3}, "5", "598:")
	if len(got) != 3 || got[0].Record != 5 || got[2].Record != 599 {
		t.Fatalf("%+v", got)
	}
	images, labels := got[0].Values[0], got[0].Values[1]
	if images.Moments.Min != 5 || images.Moments.Max != 196 || images.Moments.Mean != 100.5 || len(images.Elements) != 3 || string(images.Elements[2]) != "7" {
		t.Errorf("%+v", images)
	}
	if labels.Class != "owl" || string(labels.Elements[0]) != "2" || labels.Moments != nil {
		t.Errorf("%+v", labels)
	}
	var b strings.Builder
	require.NoError(t, got[0].Render(&b))
	const want = "record 5\n  images  uint8 (3, 8, 8)  [5 6 7 ...]  min 5, max 196, mean 100.5000\n  labels  int64            2 owl\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if got := shown(t, datasettest.Animals(t), Options{}); len(got) != 5 {
		t.Errorf("without RECORDS there are %d, want 5", len(got))
	}
}

func TestShowRagged(t *testing.T) {
	got := shown(t, datasettest.Captions(t), Options{Selection: dataset.Selection{Split: "val"}}, ":")
	if len(got) != 2 || got[0].Split != "val" || *got[0].Values[1].Text != strings.Repeat("é1", 8) {
		t.Fatalf("%+v", got)
	}
	if v := got[1].Values[0]; len(v.Elements) != 9 || string(v.Elements[8]) != "8" || v.Shape.String() != "(9,)" || v.String() != "[0 1 2 3 4 5 6 7 8]" {
		t.Errorf("%v", v)
	}
	if v := shown(t, datasettest.Captions(t), Options{}, "0")[0].Values[0]; v.String() != "[]" {
		t.Errorf("no tokens are %v", v)
	}
}

func TestShowEveryType(t *testing.T) {
	for dtype, want := range map[tensor.DType]string{
		tensor.Bool: "true", tensor.Uint8: "255", tensor.Int8: "-1", tensor.Uint16: "65535", tensor.Int16: "-1", tensor.Uint32: "4294967295",
		tensor.Int32: "-1", tensor.Uint64: "18446744073709551615", tensor.Int64: "-1", tensor.Float16: "NaN", tensor.BFloat16: "NaN",
		tensor.Float32: "NaN", tensor.Float64: "NaN",
	} {
		x := dataset.Aligned(dtype.Size())
		for i := range x {
			x[i] = 0xff
		}
		v := tensor.Of(tensor.Spec{Name: "x", DType: dtype}, 1, x)
		if got := elements(v, 0); len(got) != 1 || got[0] != want {
			t.Errorf("%v: %q, want %s", dtype, got, want)
		}
		if text := string(numbers(elements(v, 0))[0]); want == "NaN" && text != `"NaN"` {
			t.Errorf("%v: JSON %s", dtype, text)
		}
	}
}

func TestShowImageFiles(t *testing.T) {
	got := shown(t, datasettest.Photos(t, 3), Options{})
	if v := got[1].Values[0]; !strings.HasPrefix(v.String(), "png, 11 x 6 pixels, ") {
		t.Errorf("%v", v)
	}
	if v := got[2].Values[0]; !strings.Contains(v.String(), "cannot be read") {
		t.Errorf("%v", v)
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string][2]int{"0": {0, 1}, "9": {9, 10}, ":": {0, 10}, ":3": {0, 3}, "8:": {8, 10}, "4:4": {4, 4}, "10:": {10, 10}} {
		s, err := parseRange(text)
		require.NoError(t, err)
		if a, b, err := s.within(10); err != nil || [2]int{a, b} != want {
			t.Errorf("%s: %d, %d, %v; want %v", text, a, b, err, want)
		}
	}
	for _, text := range []string{"", "-1", "a", "3:2", "1:2:3", ":-1", "99999999999999999999"} {
		if _, err := parseRange(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"10", "3:11", "11:"} {
		if s, err := parseRange(text); err != nil {
			t.Error(err)
		} else if _, _, err := s.within(10); err == nil {
			t.Errorf("%s of 10 records exists", text)
		}
	}
}

func TestShowForeignFile(t *testing.T) {
	got := shown(t, datasettest.SmallHDF5("new-chunks"), Options{Selection: dataset.Selection{Fields: []string{"tree"}}}, "0")
	if len(got) != 1 || len(got[0].Values[0].Elements) != 4 {
		t.Errorf("%+v", got)
	}
	err := Each(context.Background(), datasettest.SmallHDF5("new-basic"), nil, Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "--field") || strings.Contains(err.Error(), "Options.Fields") {
		t.Errorf("several lengths: %v", err)
	}
	if _, err := dataset.ReadManifest(datasettest.SmallHDF5("new-basic")); err == nil || !strings.Contains(err.Error(), "not made by penstock") {
		t.Errorf("a manifest of another's file: %v", err)
	}
	if _, err := dataset.ReadManifest(filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("a manifest of nothing")
	}
}
