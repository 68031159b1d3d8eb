package kinds

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// Odd files that users have, and the error or the result of each.
func TestOddFiles(t *testing.T) {
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("a,b\n1,2\n")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for _, c := range []struct{ name, data, want string }{
		{"utf16.csv", string(wide), "is text in UTF-16; save it in UTF-8"},
		{"blank.csv", ",,\n1,2,3\n", "the first row is empty, and must name the columns"},
		{"nohead.csv", "1, 2\n3,4\n", `column 1 is called "1": the first row must name the columns`},
		{"list.json", ` [[1, 2]]`, "begins as a JSON array of other values than objects"},
		{"short.json", ` [{"a": 1}`, "the JSON array has no end: the file is cut short"},
		{"comma.json", `[{"a": 1},]`, "a comma before the end of the JSON array"},
		{"commas.json", `[{"a": 1},,{"a": 2}]`, "a comma without an element before it"},
		{"after.json", `[{"a": 1}] x`, "'x' after the end of the JSON array"},
		{"brackets.json", `[{"a": 1}}]`, "a bracket } without the one that it closes"},
		{"break.json", "[{\"a\": \"x\ny\"}]", "has a line break in a text"},
		{"one.json", `{"a": 1}`, "with an object a line it is --from jsonl"},
		{"lines.json", `{"a": [{"b": 1}]}` + "\n" + `{"a": [{"b": 2}]}`, "with an object a line it is --from jsonl"},
		{"in.json", "\ufeff" + `{"info": {"a": [{}]}, "data": [{"b": 1}], "more" : [ {"b": 2}, {"b"`, "arrays of objects are in it (data, more); write the array " +
			"that has the records, and give in-rows.json: python -c 'import json, sys;"},
		{"photo.jpg", "\xff\xd8\xff\xe0....", "is a file of one image; give the folder"},
		{"x.bin", "abc", "if it has tokens of a language model: --from tokens"},
		{"x.zip", "PK\x03\x04....", "no zip archive, or cut short"},
		{"empty.dat", "", "is empty"},
		{"data.arrow", "ARROW1", "is not an Arrow file: it is too short"},
		{"x.pt", "PK\x03\x04", "is a PyTorch pickle"},
		{"x.wav", "RIFF....WAVEfmt ", "is a sound"},
		{"sound", "RIFF....WAVEfmt ", "is a sound"},
		{"photo", "RIFF....WEBPVP8 ", "is a file of one image"},
		{"data_batch_1", "\x80\x04\x95", "is a Python pickle"},
		{"train.tfrecord-00000-of-00002", "\x10\x00", "train.tfrecord-00000-of-00002:0: the file is cut short in a record"},
		{"x.csv.xz", "\xfd7zXZ\x00....", "is compressed with xz; decompress it first"},
		{"x.tar.lz4", "\x04\x22\x4d\x18....", "is compressed with lz4; decompress it first"},
		{"first.jsonl", "[1]\n{\"a\":1}\n", "first.jsonl:1: the text is not a JSON object; the first row must be good"},
		{"fields.npy", string(npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", 12)), "is an array of records with named fields; save each as an array"},
	} {
		_, err := Open(t.Context(), write(t, c.name, c.data), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// If a folder has no images but something else that is a source, the error names that.
func TestFolderOfSomethingElse(t *testing.T) {
	for want, files := range map[string][]string{
		"; ROOT/a/b is a source of kind idx: give that":        {"a/b/train-images-idx3-ubyte"},
		"; ROOT/a is a source of kind npy: give that":          {"a/x.npy", "b/x.npy"},
		"one other file, x.csv, which is a source of kind csv": {"x.csv"},
		"one other file, a/x.wav, which is a sound":            {"a/x.wav"},
		"2 other files, such as a/x.txt":                       {"a/x.txt", "b/y.txt"},
	} {
		root := t.TempDir()
		for _, name := range files {
			path := filepath.Join(root, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
			require.NoError(t, os.WriteFile(path, []byte("words"), 0o666))
		}
		_, err := Open(t.Context(), root, source.Options{})
		if want = strings.Replace(want, "ROOT", root, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", files, err, want)
		}
	}
}

// Paths that are relative to the working folder are a usual mistake.
func TestPathsOfTables(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("data", 0o777))
	for name, text := range map[string]string{"data/a.jpg": "x", "data/t.csv": "path\ndata/a.jpg\nb.jpg\na.jpg\n"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	_, samples, err := describe(t, "data/t.csv", source.Options{})
	if err != nil || len(samples) != 3 {
		t.Fatalf("samples %q, %v", samples, err)
	}
	for i, relative := range []bool{true, false, false} {
		if strings.Contains(samples[i], "relative to the folder of the table") != relative {
			t.Errorf("sample %d: %s", i, samples[i])
		}
	}
}

// A pipe is not a source, except a stream of samples.
func TestStandardInput(t *testing.T) {
	for _, kind := range []string{"", "csv"} {
		if _, err := Open(t.Context(), "-", source.Options{Kind: kind}); err == nil || !strings.Contains(err.Error(), "standard input can be read only once") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := Open(t.Context(), os.DevNull, source.Options{Kind: "csv"}); err == nil || runtime.GOOS == "linux" && !strings.Contains(err.Error(), "is a device, which is read only once") {
		t.Errorf("error %v", err)
	}
}

// A table's kind is that of its name without the compression.
func TestCompressedTables(t *testing.T) {
	const bzip2 = "BZh91AY&SY\x03\x0c\x1f\x1b\x00\x00\x05Y\x00\x00\x10\x00\x04<\x000\x00 \x00\"\x1e\xa1\x88C\x02'4\xe3\x80\x1e.\xe4\x8ap\xa1 \x06\x18>6"
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for name, data := range map[string]string{"x.csv.bz2": bzip2, "x.csv.zst": string(z.EncodeAll([]byte("a,b\n1,2\n3,4\n"), nil))} {
		fields, samples, err := describe(t, write(t, name, data), source.Options{})
		if got := strings.Join(fields, "|"); err != nil || got != "a int64()|b int64()" || len(samples) != 2 || !strings.HasPrefix(samples[1], name+":3 0300") {
			t.Errorf("%s: fields %s, samples %q, %v", name, got, samples, err)
		}
	}
	if _, _, err := describe(t, write(t, "x.csv.bz2", bzip2[:40]), source.Options{}); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("error %v", err)
	}
}

// The first column of what pandas writes has no name; blanks around a cell are none of it.
func TestUnnamedColumn(t *testing.T) {
	fields, samples, err := describe(t, write(t, "x.csv", ", n ,ok\n0, 5,true\n1, 6 ,False\n"), source.Options{})
	require.NoError(t, err)
	if got, want := strings.Join(fields, "|"), "column_1 int64()|n int64()|ok bool()"; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	if samples[1] != "x.csv:3 0100000000000000 0600000000000000 00" {
		t.Errorf("samples %q", samples)
	}
}

// The checksum after the last value of compressed data is checked, too.
func TestChecksumAtTheEnd(t *testing.T) {
	digits := append([]byte{0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2}, "abcdef"...)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(digits); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	archive := npzBytes(t)
	flipped := bytes.Clone(archive)
	flipped[bytes.Index(flipped, []byte("abcdef"))] ^= 1
	for want, file := range map[string]struct {
		name string
		data []byte
	}{
		"cut short":     {"a-idx2-ubyte.gz", z.Bytes()[:z.Len()-6]},
		"checksum":      {"b-idx2-ubyte.gz", append(bytes.Clone(z.Bytes()[:z.Len()-8]), "\x01\x02\x03\x04\x06\x00\x00\x00"...)},
		"zip: checksum": {"c.npz", flipped},
	} {
		_, samples, err := describe(t, write(t, file.name, string(file.data)), source.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", file.name, samples, err, want)
		}
	}
	for name, data := range map[string][]byte{"a-idx2-ubyte.gz": z.Bytes(), "c.npz": archive} {
		if _, samples, err := describe(t, write(t, name, string(data)), source.Options{}); err != nil || len(samples) != 3 {
			t.Errorf("%s: %q, %v", name, samples, err)
		}
	}
}

// npzBytes returns an archive of one array, not compressed.
func npzBytes(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npz")
	f, err := os.Create(path)
	require.NoError(t, err)
	z := zip.NewWriter(f)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: zip.Store})
	require.NoError(t, err)
	a := npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }", 6)
	copy(a[len(a)-6:], "abcdef")
	if _, err := io.Copy(w, bytes.NewReader(a)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// A byte order mark is not part of the text.
func TestByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{"x.csv": "a\n1\n2\n", "x.jsonl": "{\"a\":1}\n{\"a\":2}\n"} {
		fields, samples, err := describe(t, write(t, name, "\ufeff"+text), source.Options{})
		if err != nil || len(samples) != 2 || fields[0] != "a int64()" {
			t.Errorf("%s: fields %q, samples %q, %v", name, fields, samples, err)
		}
	}
}

// A row with a stray quote is bad, and those after it are not.
func TestStrayQuote(t *testing.T) {
	_, samples, err := describe(t, write(t, "x.csv", "a,b\n1,x\n2,5\" tall\n3,\"5\"\" tall\"\n"), source.Options{})
	if err != nil || len(samples) != 3 {
		t.Fatalf("samples %q, %v", samples, err)
	}
	if !strings.HasPrefix(samples[1], `x.csv:3: a " in a cell that is not in quotes`) || !strings.HasPrefix(samples[2], "x.csv:4 03") {
		t.Errorf("samples %q", samples)
	}
}
