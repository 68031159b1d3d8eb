package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/store"
)

func chart(t *testing.T, path string) *Layout {
	t.Helper()
	l, err := Chart(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// covered makes sure that the pieces of each file lie one behind the other, from its first
// byte to its last; structures of HDF5 may contain others.
func covered(t *testing.T, l *Layout, sizes map[string]int64) {
	t.Helper()
	end := make(map[string]int64)
	for _, p := range l.Pieces {
		if p.Size <= 0 || p.Offset > end[p.File] || l.Format == "flat" && p.Offset != end[p.File] {
			t.Errorf("%s: %+v after byte %d", l.Path, p, end[p.File])
		}
		end[p.File] = max(end[p.File], p.Offset+p.Size)
	}
	if len(end) != len(sizes) {
		t.Errorf("%s: %d files, want %d", l.Path, len(end), len(sizes))
	}
	for file, size := range sizes {
		if end[file] != size {
			t.Errorf("%s: %s: listed to byte %d of %d", l.Path, file, end[file], size)
		}
	}
}

func TestLayoutOfFlatCoversEveryByte(t *testing.T) {
	path := animals(t)
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	sizes := make(map[string]int64)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		sizes[e.Name()] = info.Size()
	}
	covered(t, chart(t, path), sizes)
}

func TestLayoutOfHDF5CoversEveryByte(t *testing.T) {
	files, err := filepath.Glob(small("*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files of meta", err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		covered(t, chart(t, path), map[string]int64{filepath.Base(path): info.Size()})
	}
}

func TestLayoutSaysWhyNot(t *testing.T) {
	var b strings.Builder
	if err := chart(t, small("new-chunks")).Render(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "fixed   # cannot be mapped: layout chunked") {
		t.Errorf("got\n%s", &b)
	}
}

func eval(t *testing.T, expression string) string {
	t.Helper()
	return strings.TrimSpace(string(pythontest.Run(t, "import numpy", "-c", "import numpy as np\nprint("+expression+")")))
}

// What the command tells people to type gives the records.
func TestPythonLinesOpenTheFields(t *testing.T) {
	path := animals(t)
	s, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	l := chart(t, path)
	for expression, want := range map[string]string{
		s.Fields[0].Python + "[1][2, 1, 0, 3]":  "69", // record 514, element 67: 581 % 256
		s.Fields[1].Python + "[0].tolist()[:4]": "[0, 1, 2, 0]",
		l.Maps[1].Python + "[2, 1, 0, 3]":       "69",
		l.Maps[3].Python + ".shape":             "(88,)",
	} {
		if got := eval(t, expression); got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
	hdf5 := chart(t, small("old-basic"))
	if got, want := eval(t, hdf5.Maps[0].Python+".shape"), "(4, 3)"; got != want {
		t.Errorf("%s has shape %s, want %s", hdf5.Maps[0].Python, got, want)
	}
}

func TestPythonOfAnOddPath(t *testing.T) {
	d := &store.Dataset{Path: `a%d"b`, Format: "flat", Schema: schemaOf(1, store.CHW), Columns: schemaOf(1, store.CHW).Columns()}
	d.Columns[0].Extents = make([]store.Extent, 2)
	want := `[np.load("a%%d\"b/images-%05d.npy" % i, mmap_mode="r") for i in range(2)]`
	if got := python(d, 0, store.Whole); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
