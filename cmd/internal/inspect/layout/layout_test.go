package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/summary"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

func chart(t *testing.T, path string) *Layout {
	t.Helper()
	l, err := Read(path)
	require.NoError(t, err)
	return l
}

// covered checks that the pieces of each file follow one another, from its first byte to its
// last; structures of HDF5 may contain others.
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
	path := datasettest.Animals(t)
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	sizes := make(map[string]int64)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		sizes[e.Name()] = info.Size()
	}
	covered(t, chart(t, path), sizes)
}

func TestLayoutOfHDF5CoversEveryByte(t *testing.T) {
	files, err := filepath.Glob(datasettest.SmallHDF5("*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files of meta", err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		covered(t, chart(t, path), map[string]int64{filepath.Base(path): info.Size()})
	}
}

func TestLayoutSaysWhyNot(t *testing.T) {
	var b strings.Builder
	require.NoError(t, chart(t, datasettest.SmallHDF5("new-chunks")).Render(&b))
	if !strings.Contains(b.String(), "fixed   # cannot be mapped: layout chunked") {
		t.Errorf("got\n%s", &b)
	}
}

func eval(t *testing.T, expression string) string {
	t.Helper()
	return strings.TrimSpace(string(pythontest.Run(t, "import numpy", "-c", "import numpy as np\nprint("+expression+")")))
}

// The Python lines that the command prints read the records.
func TestPythonLinesOpenTheFields(t *testing.T) {
	path := datasettest.Animals(t)
	s, err := summary.Describe(path)
	require.NoError(t, err)
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
	hdf5 := chart(t, datasettest.SmallHDF5("old-basic"))
	if got, want := eval(t, hdf5.Maps[0].Python+".shape"), "(4, 3)"; got != want {
		t.Errorf("%s has shape %s, want %s", hdf5.Maps[0].Python, got, want)
	}
}
