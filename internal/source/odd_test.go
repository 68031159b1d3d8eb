package source

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// What users have lying about, and what they are told.
func TestOddFiles(t *testing.T) {
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("a,b\n1,2\n")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for _, c := range []struct{ name, data, want string }{
		{"utf16.csv", string(wide), "is text in UTF-16; save it in UTF-8"},
		{"blank.csv", ",,\n1,2,3\n", "the first row is empty, and must name the columns"},
		{"nohead.csv", "1, 2\n3,4\n", `column 1 is called "1": the first row must name the columns`},
		{"list.json", ` [{"a": 1}]`, "looks like one JSON array; write an object a line"},
		{"one.json", `{"a": 1}`, "with an object a line it is --from jsonl"},
		{"photo.jpg", "\xff\xd8\xff\xe0....", "is a file of one image; give the folder"},
		{"x.bin", "abc", "if it is something else, --from says so"},
		{"x.zip", "PK\x03\x04....", "is a zip archive; unpack it first"},
		{"empty.dat", "", "is empty"},
		{"data.arrow", "ARROW1", "write Parquet of it"},
		{"x.pt", "PK\x03\x04", "is a PyTorch pickle"},
		{"first.jsonl", "[1]\n{\"a\":1}\n", "line 1: bad value: the text is no JSON object; the first row has to be a good one"},
		{"fields.npy", string(npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", 12)), "is an array of records with named fields; save each as an array"},
	} {
		_, err := Open(t.Context(), write(t, c.name, c.data), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// What datasets.save_to_disk wrote is no folder of images.
func TestArrowFolder(t *testing.T) {
	path := write(t, "data-00000-of-00001.arrow", "ARROW1")
	if _, err := Open(t.Context(), filepath.Dir(path), Options{}); err == nil || !strings.Contains(err.Error(), "to_parquet(FILE)") {
		t.Errorf("error %v", err)
	}
}

// The first column of what pandas writes has no name; blanks around a cell are none of it.
func TestUnnamedColumn(t *testing.T) {
	fields, samples, err := describe(t, write(t, "x.csv", ", n ,ok\n0, 5,true\n1, 6 ,False\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(fields, "|"), "column_1 int64()|n int64()|ok bool()"; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	if samples[1] != "line 3 0100000000000000 0600000000000000 00" {
		t.Errorf("samples %q", samples)
	}
}

// The checksum behind the last value of what is compressed is compared, too.
func TestChecksumAtTheEnd(t *testing.T) {
	digits := append([]byte{0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2}, "abcdef"...)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(digits); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
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
		_, samples, err := describe(t, write(t, file.name, string(file.data)), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", file.name, samples, err, want)
		}
	}
	for name, data := range map[string][]byte{"a-idx2-ubyte.gz": z.Bytes(), "c.npz": archive} {
		if _, samples, err := describe(t, write(t, name, string(data)), Options{}); err != nil || len(samples) != 3 {
			t.Errorf("%s: %q, %v", name, samples, err)
		}
	}
}

// npzBytes returns an archive of one array, not compressed.
func npzBytes(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	a := npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }", 6)
	copy(a[len(a)-6:], "abcdef")
	if _, err := io.Copy(w, bytes.NewReader(a)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
