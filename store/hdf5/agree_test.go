//go:build cgo

package hdf5

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// sample is a dataset that both containers write.
type sample struct {
	name string
	numbered
	n    int
	opts Options
	more int // records that are appended in a second run
}

// samples are datasets of all kinds.
func samples() (list []sample) {
	add := func(name string, of numbered, n int, opts Options) { list = append(list, sample{name, of, n, opts, 0}) }
	normal := imageSchema(9, 9)
	normal.Fields[0].Normalization = &store.Normalization{Scale: 255, Mean: []float64{.1, .2, .3}, Std: []float64{1, 2, 3}}
	many := imageSchema(4, 4)
	for i := range 5000 {
		many.Fields[1].Classes = append(many.Fields[1].Classes, fmt.Sprintf("class number %d", i))
	}
	wide := store.Schema{}
	for i := range 40 {
		wide.Fields = append(wide.Fields, store.NewField(fmt.Sprintf("column-%d", i), tensor.DType(int(tensor.Bool)+i%13)))
	}
	add("types", filled(everyType()), 60, Options{Records: 60})
	add("types, fewer", filled(everyType()), 41, Options{Records: 3000})
	add("images", filled(imageSchema(40, 40)), 30, Options{Records: 30})
	add("normalized images", filled(normal), 30, Options{})
	add("many classes", filled(many), 10, Options{Records: 10})
	add("many fields", filled(wide), 20, Options{})
	add("one record", filled(imageSchema(1, 1)), 1, Options{Records: 1})
	add("ragged", raggedNumbered(noSplit), 90, Options{})
	add("ragged, one record", raggedNumbered(noSplit), 1, Options{})
	add("ragged in splits", raggedNumbered(trainOrVal), 90, Options{Splits: trainVal})
	packed := numbered{packedSchema(), func(r *store.Record, i int) { fillPacked(packedSchema(), r, i) }}
	for name, c := range compressions {
		add("packed "+name, packed, 40, Options{Compress: &c})
	}
	add("many chunks", filled(imageSchema(4, 4)), 9000, Options{Compress: &Compression{Level: 1, ChunkRecords: 1}})
	add("one axis", filled(store.Schema{Fields: []store.Field{store.NewField("x", tensor.Int16)}}), 9000, Options{Compress: &Compression{Level: 1, ChunkRecords: 7, Shuffle: ShuffleOn}})
	add("many axes", filled(store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float32, 1, 2, 1, 3, 1, 2, 2)}}), 200, Options{Compress: &Compression{ChunkRecords: 3}})
	for _, s := range []sample{list[0], list[9], list[10], list[11]} {
		s.name, s.more, s.opts.Records = s.name+", appended", 33, 0
		list = append(list, s)
	}
	return list
}

func (s *sample) build(t *testing.T, by container) (path string, m *store.Manifest) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.h5")
	opts := s.opts
	opts.by = by
	m = s.write(t, path, 0, s.n, opts, store.Info{})
	if s.more > 0 {
		opts.Append, opts.Compress = true, nil
		m = s.write(t, path, s.n, s.n+s.more, opts, store.Info{})
	}
	return path, m
}

// incomparable is what h5diff prints where a dataset is empty in both files.
const incomparable = `--------------------------------
Some objects are not comparable
--------------------------------
Use -c for a list of objects.
`

// libhdf5 and the encoder write the same dataset, in the same objects with
// the same attributes.
func TestContainersAgree(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			one, m1 := s.build(t, gonum{})
			other, m2 := s.build(t, encoded{})
			if !reflect.DeepEqual(m1, m2) || m1.ID == "" {
				t.Errorf("manifests differ: dataset %s and %s", m1.ID, m2.ID)
			}
			sameObjects(t, one, other)
			if _, err := exec.LookPath("h5diff"); err != nil {
				t.Logf("%v: apt-get install hdf5-tools", err)
				return
			}
			out, err := exec.Command("h5diff", one, other).CombinedOutput()
			out = bytes.ReplaceAll(out, []byte(incomparable), nil)
			if err != nil || len(out) > 0 {
				t.Errorf("h5diff: %v: %.2000s", err, out)
			}
		})
	}
}

// sameObjects compares types, shapes, attributes, storage and alignment of all datasets.
func sameObjects(t *testing.T, one, other string) {
	t.Helper()
	a, b := parse(t, one), parse(t, other)
	seen := 0
	for x := range a.All() {
		y, err := b.Dataset(x.Path)
		if err != nil {
			t.Error(err)
			continue
		}
		seen++
		if !reflect.DeepEqual(x.Type, y.Type) || !reflect.DeepEqual(x.Dims, y.Dims) || !reflect.DeepEqual(x.Attrs, y.Attrs) {
			t.Errorf("%s: %v %v and %v %v", x.Path, x.Type, x.Dims, y.Type, y.Dims)
		}
		if x.Layout.Kind != y.Layout.Kind || !reflect.DeepEqual(x.Layout.ChunkDims, y.Layout.ChunkDims) || !reflect.DeepEqual(x.Filters, y.Filters) {
			t.Errorf("%s: %v %v and %v %v", x.Path, x.Layout, x.Filters, y.Layout, y.Filters)
		}
		align := int64(pageAlign)
		if strings.HasPrefix(x.Path, metadataGroup) {
			align = smallAlign
		}
		if x.Layout.Kind == meta.Contiguous && x.Records() > 0 && (x.Layout.Offset%align != 0 || y.Layout.Offset%align != 0) {
			t.Errorf("%s: at %#x and %#x", x.Path, x.Layout.Offset, y.Layout.Offset)
		}
	}
	for range b.All() {
		seen--
	}
	if seen != 0 || !reflect.DeepEqual(a.Root.Attrs, b.Root.Attrs) {
		t.Errorf("%d datasets are in the first file only; attributes %v and %v", seen, a.Root.Attrs, b.Root.Attrs)
	}
}

func parse(t *testing.T, path string) *meta.File {
	t.Helper()
	data := read(t, path)
	f, err := meta.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A build that one container began cannot be resumed by the other, whose places are others.
func TestResumeByAnother(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "x.h5")
	s := imageSchema(4, 4)
	opts := Options{Records: 9, Journal: &store.Journal{Resume: true}, by: gonum{}}
	w, err := Create(dest, s, opts)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, w, s, 3)
	if err := w.Checkpoint(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	opts.by = encoded{}
	if _, err := Create(dest, s, opts); err == nil || !bytes.Contains([]byte(err.Error()), []byte("writer of HDF5")) {
		t.Errorf("error %v", err)
	}
}
