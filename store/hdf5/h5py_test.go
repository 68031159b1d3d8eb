package hdf5

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// seen is the output of testdata/describe.py.
type seen struct {
	Root     []string
	Attrs    map[string]any
	Datasets map[string]struct {
		DType   string
		Shape   []int64
		Offset  int64
		Chunked bool
		SHA256  string
		Attrs   map[string]any
	}
}

// h5py opens a file with h5py.
func h5py(t *testing.T, path string) (s seen) {
	t.Helper()
	require.NoError(t, json.Unmarshal(h5test.Run(t, filepath.Join("testdata", "describe.py"), path), &s))
	return s
}

func TestH5pyReadsEveryType(t *testing.T) {
	const n = 77
	s := everyType()
	got := h5py(t, buildFile(t, s, n, n, store.Info{}))
	want := contents(s, n)
	for _, f := range s.Fields {
		d := got.Datasets[f.Name]
		dtype := f.DType.String()
		if f.DType == tensor.BFloat16 {
			dtype = "uint16"
			if d.Attrs["dtype"] != "bfloat16" {
				t.Errorf("%s: attributes %v", f.Name, d.Attrs)
			}
		}
		shape := []int64{n}
		for _, dim := range f.Shape {
			shape = append(shape, int64(dim))
		}
		if d.DType != dtype || !reflect.DeepEqual(d.Shape, shape) || d.Chunked {
			t.Errorf("%s: %s %v, chunked %v", f.Name, d.DType, d.Shape, d.Chunked)
		}
		if d.Offset%4096 != 0 {
			t.Errorf("%s: offset %d", f.Name, d.Offset)
		}
		if d.SHA256 != fmt.Sprintf("%x", sha256.Sum256(want[f.Name])) {
			t.Errorf("%s: other values", f.Name)
		}
	}
	if len(got.Root) != len(s.Fields)+1 {
		t.Errorf("root: %v", got.Root)
	}
}

func TestH5pyReadsChecksums(t *testing.T) {
	const n = 60
	s := imageSchema(40, 40) // one block a record, and one block for all labels
	s.Fields = append(s.Fields, store.NewField("middle", tensor.Uint8, 1500))
	got := h5py(t, buildFile(t, s, n, n+1, store.Info{}))
	want := contents(s, n)
	for _, f := range s.Fields {
		var sums []byte
		block := int(layout.BlockRecords(f.RecordBytes())) * f.RecordBytes()
		for rest := want[f.Name]; len(rest) > 0; rest = rest[min(block, len(rest)):] {
			sums = binary.LittleEndian.AppendUint32(sums, layout.CRC32C(rest[:min(block, len(rest))]))
		}
		d := got.Datasets["penstock/crc/"+f.Name]
		if d.DType != "uint32" || len(d.Shape) != 1 || d.SHA256 != fmt.Sprintf("%x", sha256.Sum256(sums)) {
			t.Errorf("%s: checksums %s %v are not those of %d blocks", f.Name, d.DType, d.Shape, len(sums)/4)
		}
	}
}

func TestH5pyReadsAttributes(t *testing.T) {
	s := imageSchema(4, 4)
	hwc := store.NewField("stored", tensor.Float32, 4, 4, 2)
	hwc.Layout = tensor.HWC
	hwc.Normalization = &store.Normalization{Applied: true, Scale: 255, Mean: []float64{0.5, 0.25}, Std: []float64{0.125, 2}}
	s.Fields = append(s.Fields, hwc)
	path := buildFile(t, s, 10, 10, store.Info{NormalizeByStatistics: true})
	got := h5py(t, path)
	want := map[string]any{"format": "penstock", "format_version": 1.0, "num_samples": 10.0, "complete": 1.0}
	if !reflect.DeepEqual(got.Attrs, want) {
		t.Errorf("root: %v", got.Attrs)
	}
	want = map[string]any{"class_names": []any{"cat", "dog", "žluťoučký kůň"}}
	if a := got.Datasets["labels"].Attrs; !reflect.DeepEqual(a, want) {
		t.Errorf("labels: %v", a)
	}
	want = map[string]any{"layout": "NHWC", "mean": []any{0.5, 0.25}, "std": []any{0.125, 2.0}, "scale": 255.0, "normalization_applied": true}
	if a := got.Datasets["stored"].Attrs; !reflect.DeepEqual(a, want) {
		t.Errorf("stored: %v", a)
	}
	a := got.Datasets["images"].Attrs
	if a["layout"] != "NCHW" || a["normalization_applied"] != false || len(a["mean"].([]any)) != 3 || len(a["std"].([]any)) != 3 {
		t.Errorf("images: %v", a)
	}
}

// Long lists of classes do not fit into an attribute.
func TestH5pyReadsManyClasses(t *testing.T) {
	s := imageSchema(4, 4)
	s.Fields = append(s.Fields, store.NewField("fine", tensor.Int64))
	for i := range 5000 {
		name := fmt.Sprintf("Klasse %d %s", i, strings.Repeat("ß", i%20))
		s.Fields[1].Classes = append(s.Fields[1].Classes, name)
		s.Fields[2].Classes = append(s.Fields[2].Classes, name)
	}
	got := h5py(t, buildFile(t, s, 10, 10, store.Info{}))
	for _, f := range s.Fields[1:] {
		if a := got.Datasets[f.Name].Attrs; len(a) > 0 {
			t.Errorf("%s: attributes %.100v", f.Name, a)
		}
		list := encode.Texts("class_names", f.Classes)
		d := got.Datasets["penstock/class_names/"+f.Name]
		if d.DType != fmt.Sprintf("|S%d", list.Element.Text) || d.SHA256 != fmt.Sprintf("%x", sha256.Sum256(list.Data)) {
			t.Errorf("%s: class names are %s %v", f.Name, d.DType, d.Shape)
		}
	}
}
