package meta

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Everything that h5py says of the generated files must come out of this package, too.
func TestAgainstH5py(t *testing.T) {
	dir := generate(t)
	for name, want := range readAnswers(t, dir) {
		t.Run(name, func(t *testing.T) {
			f := mustOpen(t, filepath.Join(dir, name))
			if f.Superblock.Base != want.UserBlock {
				t.Errorf("user block %d, want %d", f.Superblock.Base, want.UserBlock)
			}
			got := map[string]*Link{"/": {Path: "/", Group: f.Root}}
			for l := range f.Walk() {
				got[l.Path] = l
			}
			for path, a := range want.Objects {
				l := got[path]
				if l == nil {
					t.Errorf("%s: missing", path)
					continue
				}
				compareLink(t, f, l, a)
			}
			if len(got) != len(want.Objects) {
				t.Errorf("%d objects, want %d", len(got), len(want.Objects))
			}
		})
	}
}

func compareLink(t *testing.T, f *File, l *Link, a answer) {
	t.Helper()
	if l.Err != nil {
		t.Errorf("%s: %v", l.Path, l.Err)
		return
	}
	switch kind := kindOf(l); {
	case kind != a.Kind:
		t.Errorf("%s: %s, want %s", l.Path, kind, a.Kind)
	case kind == "group":
		compareHeader(t, f, l.Path, l.Group.HeaderAt, a.Header)
		compareAttrs(t, l.Path, l.Group.Attrs, a.Attrs)
	case kind == "dataset":
		compareHeader(t, f, l.Path, l.Dataset.HeaderAt, a.Header)
		compareAttrs(t, l.Path, l.Dataset.Attrs, a.Attrs)
		compareDataset(t, l.Dataset, a)
	case kind == "type":
		compareAttrs(t, l.Path, l.Attrs, a.Attrs)
		compareType(t, l.Path, l.Type, a.Type)
	case l.Target != a.Target || l.File != a.File:
		t.Errorf("%s: leads to %q %q, want %q %q", l.Path, l.File, l.Target, a.File, a.Target)
	}
}

func kindOf(l *Link) string {
	switch {
	case l.Kind != Hard:
		return l.Kind.String()
	case l.Loop:
		return "loop"
	case l.Group != nil:
		return "group"
	case l.Dataset != nil:
		return "dataset"
	case l.Type != nil:
		return "type"
	}
	return l.Kind.String()
}

// h5py gives header addresses relative to the base address.
func compareHeader(t *testing.T, f *File, path string, got, want int64) {
	t.Helper()
	if got != want+f.Superblock.Base {
		t.Errorf("%s: header at %d, want %d", path, got, want+f.Superblock.Base)
	}
}

func compareDataset(t *testing.T, d *Dataset, a answer) {
	t.Helper()
	if d.Err != nil {
		t.Errorf("%s: %v", d.Path, d.Err)
		return
	}
	compareType(t, d.Path, d.Type, a.Type)
	if !slices.Equal(d.Dims, a.Dims) || !slices.Equal(d.MaxDims, a.Max) || d.Null != (a.Space == "null") {
		t.Errorf("%s: dims %v %v %v, want %v %v %s", d.Path, d.Dims, d.MaxDims, d.Null, a.Dims, a.Max, a.Space)
	}
	if d.Layout.Kind.String() != a.Layout || len(d.External) != a.External {
		t.Errorf("%s: layout %v, %d external files, want %s, %d", d.Path, d.Layout.Kind, len(d.External), a.Layout,
			a.External)
	}
	if d.Layout.Kind == Contiguous && d.Layout.Offset != a.Offset {
		t.Errorf("%s: offset %d, want %d", d.Path, d.Layout.Offset, a.Offset)
	}
	if d.Layout.Kind == Chunked && !slices.Equal(d.Layout.ChunkDims, a.Chunks) {
		t.Errorf("%s: chunks %v, want %v", d.Path, d.Layout.ChunkDims, a.Chunks)
	}
	compareFilters(t, d, a)
	if a.Value != nil {
		compareData(t, d, *a.Value)
	}
}

func compareFilters(t *testing.T, d *Dataset, a answer) {
	t.Helper()
	var got, want []string
	for _, f := range d.Filters {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("[%d,%v]", f.ID, f.Params), " ", ","))
	}
	for _, f := range a.Filters {
		want = append(want, strings.ReplaceAll(string(f), " ", ""))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: filters %v, want %v", d.Path, got, want)
	}
}

func compareData(t *testing.T, d *Dataset, want valueAnswer) {
	t.Helper()
	v, err := d.Value(1 << 20)
	if d.Layout.Kind == Contiguous && d.Layout.Offset < 0 && d.Layout.Size > 0 {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: never allocated, but Value gives %v", d.Path, err)
		}
		return
	}
	compareValue(t, d.Path, v, err, want)
}

func compareType(t *testing.T, path string, typ *Datatype, want string) {
	t.Helper()
	got := typ.String()
	switch want {
	case "compound", "enum", "array", "vlen", "opaque", "reference":
		if typ.Class.String() != want {
			t.Errorf("%s: type %s, want %s", path, got, want)
		}
	default:
		if got != want {
			t.Errorf("%s: type %q, want %q", path, got, want)
		}
	}
}

func compareAttrs(t *testing.T, path string, got Attrs, want map[string]valueAnswer) {
	t.Helper()
	for name, w := range want {
		a, ok := got.Get(name)
		if !ok {
			t.Errorf("%s: no attribute %q", path, name)
			continue
		}
		compareValue(t, path+"@"+name, a.Value, a.Err, w)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d attributes, want %d", path, len(got), len(want))
	}
}

func compareValue(t *testing.T, path string, v Value, err error, want valueAnswer) {
	t.Helper()
	if want.Kind == "raw" {
		if !errors.Is(err, ErrUnsupported) || len(v.Raw) == 0 {
			t.Errorf("%s: error %v and %d raw bytes of a value that is only described", path, err, len(v.Raw))
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if v.Null != (want.Kind == "null") || !slices.Equal(v.Dims, want.Dims) {
		t.Errorf("%s: null %v dims %v, want %s %v", path, v.Null, v.Dims, want.Kind, want.Dims)
	}
	if got := fmt.Sprint(v.data); !v.Null && got != want.text() && !v.sameFloats(want.Floats) {
		t.Errorf("%s: %T %.100s, want %s %.100s", path, v.data, got, want.Kind, want.text())
	}
}

func (v Value) sameFloats(want []float64) bool {
	got, ok := v.data.([]float64)
	return ok && slices.EqualFunc(got, want, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}

// text is the value as fmt prints the slice that Value holds.
func (w valueAnswer) text() string {
	switch w.Kind {
	case "strings":
		return fmt.Sprint(w.Strings)
	case "bools":
		return fmt.Sprint(w.Bools)
	case "ints":
		return fmt.Sprint(w.Ints)
	case "uints":
		out := make([]uint64, len(w.Uints))
		for i, s := range w.Uints {
			out[i], _ = strconv.ParseUint(s, 10, 64)
		}
		return fmt.Sprint(out)
	}
	return "floats"
}
