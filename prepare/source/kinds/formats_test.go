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

// WebDatasets with the indexes of wids, and what its dataset reads of them.
func TestWids(t *testing.T) {
	checkLibrary(t, "import webdataset, wids", "make_wids.py", "tar", 40)
}

// The order of the shards is the index's, and an index that lies is refused.
func TestIndexOfShards(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.tar", "b.tar", "c.tar"} {
		writeTar(t, filepath.Join(dir, name), name[:1]+"1.txt", name[:1]+"2.txt")
	}
	outside := filepath.Join(t.TempDir(), "x.tar")
	writeTar(t, outside, "x.txt")
	index := filepath.Join(dir, "index.json")
	open := func(text string, allowed bool) (names []string, err error) {
		require.NoError(t, os.WriteFile(index, []byte(text), 0o600))
		s, err := Open(t.Context(), index, source.Options{Outside: allowed})
		if err != nil {
			return nil, err
		}
		defer s.Close()
		for sample, err := range s.Samples() {
			require.NoError(t, err)
			names = append(names, filepath.Base(sample.Name))
		}
		return names, nil
	}
	const from = `{"wids_version": 1, "shardlist": [`
	names, err := open(from+`{"url": "c.tar", "nsamples": 2}, {"url": "file://`+filepath.ToSlash(dir)+`/a.tar", "nsamples": 2}]}`, false)
	if want := []string{"c1", "c2", "a1", "a2"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, error %v; want %q", names, err, want)
	}
	far := from + `{"url": "` + filepath.ToSlash(outside) + `", "nsamples": 1}]}`
	if names, err = open(far, true); err != nil || len(names) != 1 {
		t.Errorf("with --outside: %q, error %v", names, err)
	}
	for text, want := range map[string]string{
		far: "--outside",
		from + `{"url": "../x.tar", "nsamples": 1}]}`:                                 "--outside",
		from + `{"url": "a.tar", "nsamples": 3}]}`:                                    "a.tar has 2 samples, and 3 by its index",
		from + `{"url": "a.tar", "nsamples": -1}]}`:                                   "nsamples",
		from + `{"url": "a.tar"}]}`:                                                   "nsamples",
		from + `{"url": "a.tar", "nsamples": 2}, {"url": "./a.tar", "nsamples": 2}]}`: "named twice",
		from + `{"url": "d.tar", "nsamples": 2}]}`:                                    "no such file",
		from + `{"nsamples": 2}]}`:                                                    "has no URL",
		from + `{"url": "s3://bucket/a.tar", "nsamples": 2}]}`:                        "another place than the index",
		from + `{"url": "pipe:cat a.tar", "nsamples": 2}]}`:                           "no such file",
		from + `{"url": "index.json", "nsamples": 2}]}`:                               "cut short",
		from + `]}`:                            "no shards",
		from:                                   "is no index of wids",
		`{"wids_version": 2, "shardlist": []}`: "version 2",
		`{"wids_version": 1, "datasets": [{"source_url": "https://example.org/x.json"}]}`: "leads to other places",
	} {
		if _, err := open(text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
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
