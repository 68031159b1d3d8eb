package prepare

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// foreign writes sources of all kinds with NumPy, h5py and Python's own libraries.
func foreign(t *testing.T) string {
	t.Helper()
	h5test.Python(t)
	dir := filepath.Join(t.TempDir(), "sources")
	h5test.Run(t, "testdata/make_sources.py", dir)
	data, err := os.ReadFile(filepath.Join(dir, "tar.tar"))
	require.NoError(t, err)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	rawtest.Put(t, dir, "tarzst.tar.zst", z.EncodeAll(data, nil))
	return dir
}

// sourceTable is docs/sources.md: every kind of source, and the file that the test uses for it.
var sourceTable = []struct{ kind, name, fields string }{
	{"imagefolder", "imagefolder", ""},
	{"csv", "csv.csv", ""},
	{"jsonl", "jsonl.jsonl", "meta.inline=pixels:base64,label,number,vector,boxes,tokens,caption"},
	{"tar", "tar.tar", ""},
	{"tar", "targz.tar.gz", ""},
	{"tar", "tarzst.tar.zst", ""},
	{"zip", "zip.zip", ""},
	{"npy", "npy.npy", ""},
	{"npy", "npyf.npy", ""},
	{"npz", "npz.npz", ""},
	{"npz", "npzc.npz", ""},
	{"idx", "idx", ""},
	{"idx", "idxgz", ""},
	{"idx", "idxf.idx", ""},
	{"cifar", "cifar", ""},
	{"hdf5", "hdf5.h5", ""},
	{"tfrecord", "tfrecord.tfrecord", ""},
	{"tfrecord", "tfrecordgz.gz", ""},
}

// Every kind of source in every format, read back by NumPy and h5py; then each of these
// datasets as a source of the other format.
func TestSources(t *testing.T) {
	dir := foreign(t)
	check := []string{"testdata/check_datasets.py"}
	convert := func(source, kind, fields, dest, expected string) {
		c := DefaultConfig()
		c.Source, c.Fields, c.Dest = source, fields, dest
		s := mustRun(t, c)
		if s.Source.Kind != kind {
			t.Errorf("%s was taken for %s, want %s", source, s.Source.Kind, kind)
		}
		check = append(check, dest, filepath.Join(dir, expected+".expected.npz"))
	}
	for _, row := range sourceTable {
		name, _, _ := strings.Cut(row.name, ".")
		flat, h5 := filepath.Join(dir, "out", name), filepath.Join(dir, "out", name+".h5")
		convert(filepath.Join(dir, row.name), row.kind, row.fields, flat, name)
		convert(filepath.Join(dir, row.name), row.kind, row.fields, h5, name)
		convert(flat, "flat", "", filepath.Join(dir, "again", name+".h5"), name)
		convert(flat, "flat", "", filepath.Join(dir, "again", name), name)
		convert(h5, "hdf5", "", filepath.Join(dir, "back", name), name)
	}
	h5test.Run(t, check...)
}

// hubRow is a row as the Hugging Face hub stores labelled images.
type hubRow struct {
	Image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	} `parquet:"image"`
	Label int64   `parquet:"label"`
	Score float32 `parquet:"score"`
	Small int8    `parquet:"small"`
	Text  string  `parquet:"text"`
	Ids   []int32 `parquet:"ids,list"`
}

func hubRows(t *testing.T, n int) (rows []hubRow) {
	t.Helper()
	for i := range n {
		r := hubRow{Label: int64(i % 2), Score: float32(i) / 4, Small: int8(-i), Text: strings.Repeat("é", i)}
		r.Image.Bytes, r.Image.Path = rawtest.Picture(t, ".png", 24, 24, i), fmt.Sprint(i, ".png")
		for k := range i {
			r.Ids = append(r.Ids, int32(k*i))
		}
		rows = append(rows, r)
	}
	return rows
}

func writeHub(t *testing.T, rows []hubRow) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.parquet")
	meta := `{"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}, "image": {"_type": "Image"}}}}`
	require.NoError(t, parquet.WriteFile(path, rows, parquet.KeyValueMetadata("huggingface", meta), parquet.MaxRowsPerRowGroup(3)))
	return path
}

func TestParquet(t *testing.T) {
	c := DefaultConfig()
	c.Source = writeHub(t, hubRows(t, 8))
	c.Dest = filepath.Join(t.TempDir(), "ds")
	s := mustRun(t, c)
	var got []string
	for _, f := range s.Fields {
		got = append(got, f.Name+" "+f.Type()+f.Meaning())
	}
	want := []string{
		"images uint8 (3, 24, 24)  CHW", "labels int64 ()  2 classes: no, yes", "score float32 ()", "small int8 ()",
		"text uint8 (*,)  text", "ids int32 (*,)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || s.Records != 8 {
		t.Errorf("%d records, fields\n%s\nwant\n%s", s.Records, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := string(rawtest.Payload(t, c.Dest, "text.values")); text != strings.Repeat("é", 28) {
		t.Errorf("text %q", text)
	}
	if small := rawtest.Payload(t, c.Dest, "small"); int8(small[7]) != -7 {
		t.Errorf("small %v", small)
	}
}

// pyarrowPython returns the command of a Python that has pyarrow, or skips the test.
func pyarrowPython(t *testing.T) string {
	t.Helper()
	p := pythontest.Find("import pyarrow.parquet, PIL, h5py")
	if p == "" {
		t.Skip("no Python here has pyarrow, Pillow and h5py; PYTHON=... names one. Files of parquet-go are read by TestParquet")
	}
	return p
}

// pyarrow writes the files that the Hub serves. If it is installed, they are read too.
func TestPyarrow(t *testing.T) {
	python := pyarrowPython(t)
	dir := t.TempDir()
	call := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", python, args, err, out)
		}
	}
	call("testdata/make_parquet.py", dir)
	expected, _ := filepath.Glob(filepath.Join(dir, "*.expected.npz"))
	if len(expected) < 15 {
		t.Fatalf("only %d files were made", len(expected))
	}
	check := []string{"testdata/check_datasets.py"}
	for _, want := range expected {
		c := DefaultConfig()
		c.Source = strings.TrimSuffix(want, ".expected.npz")
		if _, err := os.Stat(c.Source); err != nil {
			c.Source += ".parquet"
		}
		for _, ext := range []string{"", ".h5"} {
			c.Dest = filepath.Join(dir, "out", strings.TrimSuffix(filepath.Base(want), ".expected.npz")+ext)
			mustRun(t, c)
			check = append(check, c.Dest, want)
		}
	}
	call(check...)
}

// Errors of Parquet rows and of types of --fields say where they are.
func TestParquetErrors(t *testing.T) {
	type row struct {
		Ids   []int32  `parquet:"ids,list"`
		Words []string `parquet:"words,list"`
		Blobs [][]byte `parquet:"blobs,list"`
		X     float64  `parquet:"x"`
	}
	c := DefaultConfig()
	c.Source, c.Dest = filepath.Join(t.TempDir(), "x.parquet"), filepath.Join(t.TempDir(), "ds")
	require.NoError(t, parquet.WriteFile(c.Source, []row{{[]int32{1, 2}, []string{"a"}, nil, 1}, {[]int32{1, 2, 3}, nil, nil, 2}}))
	for fields, want := range map[string]string{
		"":                "column blobs: lists of values of type BYTE_ARRAY cannot become a field; leave them out: --fields ids,words,x",
		"ids:int32[2]":    "sample 1: column ids: a list of 3 numbers where int32[2] is expected",
		"ids:int64[2]":    "column ids: holds int32, which :int64[2] cannot convert",
		"ids:int32[*,2]":  "column ids: is of type INT(32,true) and cannot be read as int32[*,2]",
		"x:float64[1]":    "column x: is of type DOUBLE and cannot be read as float64[1]",
		"words:label":     "column words: is of type STRING and cannot be read as label",
		"ids:int32[*],xx": `there is no column "xx"; did you mean "x"?`,
	} {
		c.Fields = fields
		if got := runError(t, c); !strings.Contains(got, want) {
			t.Errorf("--fields %s: %s, want %s", fields, got, want)
		}
	}
	c.Fields = "ids:int32[*],x:float64"
	mustRun(t, c)
}

// Text in another encoding is refused with the program that converts it.
func TestLatin1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(path, []byte("name,x\ncaf\xe9,1\n"), 0o644))
	c := config(t, path)
	c.Images.Resize, c.Images.Crop = nil, nil
	if _, err := Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "rows.csv:2: name: text that is not UTF-8 (iconv -f LATIN1 -t UTF-8 ") {
		t.Errorf("error %v", err)
	}
}

// The table of kinds in docs/sources.md has a row for every kind of source.
func TestDocumentedSources(t *testing.T) {
	doc, err := os.ReadFile("../docs/sources.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(doc), "\n## Kinds\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := make(map[string]bool)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| `") && strings.TrimSpace(cells[2]) != "" {
			rows[strings.Trim(cells[1], " `")] = true
		}
	}
	for _, kind := range source.Kinds {
		if !rows[kind] {
			t.Errorf("the table has no row for %s", kind)
		}
	}
	if len(rows) != len(source.Kinds) {
		t.Errorf("%d rows for %d kinds", len(rows), len(source.Kinds))
	}
}
