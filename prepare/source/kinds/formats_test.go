package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// expectation is the output of testdata/expect.py for a source.
type expectation struct {
	Fields, Rows, Classes []string
	Refused, Flag, Kind   string
}

// checkExpected compares the sources in a folder with the expected results, and returns their number.
func checkExpected(t *testing.T, dir, kind string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.expected.json"))
	require.NoError(t, err)
	for _, file := range files {
		path := strings.TrimSuffix(file, ".expected.json")
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(file)
			var want expectation
			if err = errors.Join(err, json.Unmarshal(text, &want)); err != nil {
				t.Fatal(err)
			}
			if want.Kind == "" {
				want.Kind = kind
			}
			if found, err := source.Detect(path); found != want.Kind && want.Refused == "" && !strings.Contains(string(text), `"kind": "tokens"`) {
				t.Errorf("is taken for %q, %v", found, err)
			}
			checkSource(t, path, want)
		})
	}
	return len(files)
}

func checkSource(t *testing.T, path string, want expectation) {
	t.Helper()
	s, err := Open(t.Context(), path, source.Options{Kind: want.Kind, Fields: want.Flag, IsImage: func(head []byte) bool { return imagefile.Sniff(head) != "" }})
	if want.Refused != "" {
		if err == nil || !strings.Contains(err.Error(), want.Refused) {
			t.Errorf("error %v, want %s", err, want.Refused)
		}
		return
	}
	require.NoError(t, err)
	defer s.Close()
	var fields []string
	for _, f := range s.Info().Fields {
		fields = append(fields, strings.TrimSpace(fmt.Sprintf("%s %v%v%s %s", f.Name, f.DType, f.Shape, map[bool]string{true: "*"}[f.Ragged], f.Content)))
	}
	if !slices.Equal(fields, want.Fields) {
		t.Errorf("fields %q, want %q", fields, want.Fields)
	}
	if got := classesOf(s.Info()); len(want.Classes) > 0 && !slices.Equal(got, want.Classes) {
		t.Errorf("classes %q, want %q", got, want.Classes)
	}
	rows := readRows(t, s, 0)
	for i, row := range rows {
		if i < len(want.Rows) && row != want.Rows[i] {
			t.Errorf("row %d is %.200s, want %.200s", i, row, want.Rows[i])
		}
	}
	if len(rows) != len(want.Rows) || s.Info().Count >= 0 && s.Info().Count != int64(len(rows)) {
		t.Errorf("%d rows and %d by its word, want %d", len(rows), s.Info().Count, len(want.Rows))
	}
	if from := readRows(t, s, 1); !slices.Equal(from, rows[min(1, len(rows)):]) {
		t.Errorf("from row 1 on: %.200q", from)
	}
}

// readRows returns the values of all samples from one on, or why a sample is bad.
func readRows(t *testing.T, s source.Source, from int64) (rows []string) {
	t.Helper()
	names := make(map[string]bool)
	v := source.NewValues(len(s.Info().Fields))
	for sample, err := range source.From(s, from) {
		require.NoError(t, err)
		if names[sample.Name] {
			t.Errorf("two samples are called %s", sample.Name)
		}
		names[sample.Name] = true
		v.Clear()
		if err := sample.Data.Read(v); err != nil {
			rows = append(rows, err.Error())
			continue
		}
		var values []string
		for i := range v.Len() {
			values = append(values, fmt.Sprintf("%x", v.Get(i)))
		}
		rows = append(rows, strings.Join(values, "|"))
	}
	return rows
}

// checkLibrary makes sources with a library, by a script that prints how many, and compares them with the
// expected datasets.
func checkLibrary(t *testing.T, statement, script, kind string, atLeast int) {
	t.Helper()
	dir := t.TempDir()
	out := strings.Fields(string(pythontest.Run(t, statement, filepath.Join("testdata", script), dir)))
	if n := checkExpected(t, dir, kind); len(out) == 0 || out[len(out)-1] != strconv.Itoa(n) || n < atLeast {
		t.Errorf("%d sources, and the script says %q", n, out)
	}
}

// TensorFlow's own files.
func TestTensorFlow(t *testing.T) {
	checkLibrary(t, "import tensorflow", "make_tfrecord.py", "tfrecord", 40)
}

// Some of them, for where there is no TensorFlow.
func TestTFRecord(t *testing.T) {
	if n := checkExpected(t, "testdata/tfrecord", "tfrecord"); n < 40 {
		t.Errorf("only %d sources", n)
	}
}

// Python's zip archives.
func TestZipfile(t *testing.T) {
	checkLibrary(t, "import numpy", "make_zip.py", "zip", 40)
}

// Some of them, for where there is no Python.
func TestZip(t *testing.T) {
	if n := checkExpected(t, "testdata/zip", "zip"); n < 40 {
		t.Errorf("only %d sources", n)
	}
}

// The files of pyarrow, and the folders of datasets.
func TestArrowLibraries(t *testing.T) {
	checkLibrary(t, "import pyarrow, datasets", "make_arrow.py", "arrow", 40)
}

// Some of them, for where there are no such libraries.
func TestArrow(t *testing.T) {
	if n := checkExpected(t, "testdata/arrow", "arrow"); n < 40 {
		t.Errorf("only %d sources", n)
	}
}

// The datasets of MosaicML Streaming.
func TestStreaming(t *testing.T) {
	checkLibrary(t, "import streaming, PIL", "make_mds.py", "mds", 40)
}

// Some of them, for where there is no such library.
func TestMDS(t *testing.T) {
	if n := checkExpected(t, "testdata/mds", "mds"); n < 40 {
		t.Errorf("only %d sources", n)
	}
}

// Files of tokens by the formats' descriptions, and by Megatron where it is installed.
func TestTokens(t *testing.T) {
	checkLibrary(t, "import numpy", "make_tokens.py", "tokens", 40)
}

// Some of them, for where there is no NumPy.
func TestTokensWithoutPython(t *testing.T) {
	if n := checkExpected(t, "testdata/tokens", "tokens"); n < 40 {
		t.Errorf("only %d sources", n)
	}
}
