package source

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file in a new folder.
func write[T string | []byte](t testing.TB, name string, text T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustOpen opens a source that is good.
func mustOpen(t testing.TB, path string, opts Options) Source {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// describe opens a source and returns its fields, and what every sample is or why it is bad.
func describe(t testing.TB, path string, opts Options) (fields, samples []string, err error) {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	info := s.Info()
	for _, f := range info.Fields {
		fields = append(fields, strings.TrimSpace(fmt.Sprintf("%s %v%v%s %s", f.Name, f.DType, f.Shape, map[bool]string{true: "*"}[f.Ragged], f.Content)))
	}
	v := NewValues(len(info.Fields))
	for sample, err := range s.Samples() {
		if err != nil {
			return fields, samples, err
		}
		if err := sample.Data.Read(v); err != nil {
			samples = append(samples, sample.Name+": "+err.Error())
			continue
		}
		text := sample.Name
		for i := range info.Fields {
			text += fmt.Sprintf(" %x", v.Get(i))
		}
		samples = append(samples, text)
	}
	return fields, samples, nil
}

func TestCSV(t *testing.T) {
	for _, d := range []string{",", "\t", ";", "|"} {
		text := "\xef\xbb\xbfn,label,text\n1,b,\"two\nlines\"\n,a,\n3,b,x\n4,c,y,z\n"
		path := write(t, "x.csv", strings.ReplaceAll(text, ",", d))
		fields, samples, err := describe(t, path, Options{Fields: "n:uint8,label,text"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(fields, "|"); got != "n uint8()|label int64()|text uint8()* utf-8" {
			t.Errorf("fields %s", got)
		}
		want := []string{
			"line 2 01 0100000000000000 " + fmt.Sprintf("%x", "two\nlines"), "line 4: column n: bad value: it is empty",
			"line 5 03 0100000000000000 78", "line 6: bad value: 4 columns where the header has 3",
		}
		if strings.Join(samples, "\n") != strings.Join(want, "\n") {
			t.Errorf("samples\n%s\nwant\n%s", strings.Join(samples, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestTableRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"":               "is empty; the first row names the columns",
		"a,b\n":          "holds no rows",
		"1,2\n3,4\n":     `column 1 is called "1": the first row must name the columns`,
		"a,a\n1,2\n":     `two columns are called "a"`,
		"a,b\n1,\"2\n":   "extraneous or missing",
		"a b,a_b\n1,2\n": "would both be the field",
	} {
		if _, _, err := describe(t, write(t, "x.csv", text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	path := write(t, "x.csv", "number,b\n1,2\n")
	if _, _, err := describe(t, path, Options{Fields: "numbr"}); err == nil || !strings.Contains(err.Error(), `did you mean "number"?`) {
		t.Errorf("error %v", err)
	}
}

func TestJSONL(t *testing.T) {
	inline := base64.StdEncoding.EncodeToString([]byte("PIXELS"))
	path := write(t, "x.jsonl", `{"id": "7", "a": {"b": 1, "c": [0.5]}, "img": "data:image/png;base64,`+inline+`"}`+"\n\n"+
		`{"a": {"c": [], "b": 2}, "id": null, "img": "???"}`+"\n[]\n{\"a\":\n")
	fields, samples, err := describe(t, path, Options{Fields: "a.b=b:uint8,a.c=c:uint8[*],id,img:base64"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(fields, "|"); got != "b uint8()|c uint8()*|id uint8()* utf-8|img uint8()* image" {
		t.Errorf("fields %s", got)
	}
	want := []string{
		`line 1: column a.c: bad value: "0.5" is no uint8`, "line 3: column img: bad value: it is not base64: illegal base64 data at input byte 0",
		"line 4: bad value: the text is no JSON object", "line 5: bad value: not JSON: EOF",
	}
	if strings.Join(samples, "\n") != strings.Join(want, "\n") {
		t.Errorf("samples\n%s\nwant\n%s", strings.Join(samples, "\n"), strings.Join(want, "\n"))
	}
}

// Paths are relative to the table, and URLs are no paths.
func TestImagePaths(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tables/x.csv": "photo\n../pictures/a.png\n../pictures/b.png\nhttp://x/c.png\n", "pictures/a.png": "PIXELS",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fields, samples, err := describe(t, filepath.Join(dir, "tables/x.csv"), Options{Outside: true})
	if err != nil || len(fields) != 1 || fields[0] != "photo uint8()* image" {
		t.Fatalf("%v, %v", fields, err)
	}
	if samples[0] != fmt.Sprintf("line 2 %x", "PIXELS") || !strings.Contains(samples[1], "no such file") || !strings.Contains(samples[2], "is a URL; download the files first") {
		t.Errorf("samples %q", samples)
	}
}

// Several files of a glob are one table after the other.
func TestSeveralTables(t *testing.T) {
	path := write(t, "a.csv", "n\n1\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "b.csv"), []byte("n\n2\n3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, samples, err := describe(t, filepath.Join(filepath.Dir(path), "*.csv"), Options{})
	if err != nil || len(samples) != 3 || !strings.HasSuffix(strings.Fields(samples[2])[0], "/b.csv:3") {
		t.Errorf("samples %q, %v", samples, err)
	}
}

func TestRowsHaveALimit(t *testing.T) {
	f := &lineFeeder{lines: &lineReader{r: strings.NewReader("")}, rest: "0123456789", left: 5}
	if _, err := f.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "is a quote missing?") {
		t.Errorf("error %v", err)
	}
}

func TestErrorsOfValuesAreTold(t *testing.T) {
	s, err := Open(t.Context(), write(t, "x.csv", "label,n\na,1\nb,x\n"), Options{Fields: "label,n:int8"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := NewValues(2)
	var bad error
	for sample := range s.Samples() {
		bad = sample.Data.Read(v)
	}
	if !errors.Is(bad, ErrValue) {
		t.Errorf("error %v is no ErrValue", bad)
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "a\n\"x\ny\"\n", "a;b\n1;[1,2]\n3;[]\n", "label\nx\ny\n", "\xef\xbb\xbfa\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "csv", "x.csv", data) })
}

func FuzzJSONL(f *testing.F) {
	for _, s := range []string{`{"a": 1}`, `{"a": {"b": [1, [2]]}}`, "{}\n{\"a\":\"\\u0000\"}", `{"a":1,"a":"x"}`, `{"label":"x"}` + "\n" + `{"label":"y"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "jsonl", "x.jsonl", data) })
}
