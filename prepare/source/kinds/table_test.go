package kinds

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

func TestCSV(t *testing.T) {
	for _, d := range []string{",", "\t", ";", "|"} {
		text := "\xef\xbb\xbfn,label,text\n1,b,\"two\nlines\"\n,a,\n3,b,x\n4,c,y,z\n"
		path := write(t, "x.csv", strings.ReplaceAll(text, ",", d))
		fields, samples, err := describe(t, path, source.Options{Fields: "n:uint8,label,text"})
		require.NoError(t, err)
		if got := strings.Join(fields, "|"); got != "n uint8()|label int64()|text uint8()* utf-8" {
			t.Errorf("fields %s", got)
		}
		want := []string{
			"x.csv:2 01 0100000000000000 " + fmt.Sprintf("%x", "two\nlines"), "x.csv:4: column n: it is missing",
			"x.csv:5 03 0100000000000000 78", "x.csv:6: the row has 4 columns, but the header has 3",
		}
		if strings.Join(samples, "\n") != strings.Join(want, "\n") {
			t.Errorf("samples\n%s\nwant\n%s", strings.Join(samples, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestTableRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"":                "is empty; the first row names the columns",
		"a,b\n":           "holds no rows",
		"1,2\n3,4\n":      `column 1 is called "1": the first row must name the columns`,
		"a,b\r1,2\r3,4\r": "its lines end in CR alone",
		"a,a\n1,2\n":      `two columns are called "a"`,
		"a,b\n1,\"2\n":    `begins in line 2 has no end; is a " missing?`,
	} {
		if _, _, err := describe(t, write(t, "x.csv", text), source.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	path := write(t, "x.csv", "number,b\n1,2\n")
	if _, _, err := describe(t, path, source.Options{Fields: "numbr"}); err == nil || !strings.Contains(err.Error(), `did you mean "number"?`) {
		t.Errorf("error %v", err)
	}
}

// Columns keep names with punctuation, and those that can be no names are refused if others have what they become.
func TestNamesOfPunctuation(t *testing.T) {
	for file, text := range map[string]string{
		"x.csv":   "a.b,a/c,x (m),%,a_b_2,a:b,a_b\n1,2,3,4,5,6,7\n",
		"x.jsonl": `{"a.b":1,"a/c":2,"x (m)":3,"%":4,"a_b_2":5,"a:b":6,"a_b":7}`,
	} {
		fields, samples, err := describe(t, write(t, file, text), source.Options{})
		want := "a.b int64()|a/c int64()|x (m) int64()|% int64()|a_b_2 int64()|a:b int64()|a_b int64()"
		if got := strings.Join(fields, "|"); err != nil || got != want {
			t.Errorf("fields %s, %v, want %s", got, err, want)
		}
		if len(samples) != 1 || !strings.Contains(samples[0], "01000000") || !strings.HasSuffix(samples[0], "0700000000000000") {
			t.Errorf("samples %q", samples)
		}
	}
	path := write(t, "y.jsonl", `{"a//b":1,"c":2,"a/b":3}`)
	_, _, err := describe(t, path, source.Options{})
	if err == nil || !strings.Contains(err.Error(), `columns "a//b" and "a/b" would both be the field "a/b"; name them: `) {
		t.Fatal(err)
	}
	_, flag, _ := strings.Cut(err.Error(), "--fields ")
	fields, _, err := describe(t, path, source.Options{Fields: strings.Trim(flag, "'")})
	if got := strings.Join(fields, "|"); err != nil || len(fields) != 3 {
		t.Errorf("%s: fields %s, %v", flag, got, err)
	}
}

// A column of numbers with a cell of another kind is text; its origin says because of which cell.
func TestOddCell(t *testing.T) {
	rows := strings.Repeat("1,2,x\n", 3000) + "many,2.5,y\nfew,3,z\n" + strings.Repeat("1,,w\n", 3000)
	src, err := Open(t.Context(), write(t, "x.csv", "a,b,c\n"+rows), source.Options{})
	require.NoError(t, err)
	defer src.Close()
	want := []string{`column a as text ("many" in row 3001 is not a number; --fields a:float32 takes numbers only)`, "column b as float32", "column c as text"}
	for i, f := range src.Info().Fields {
		if f.Origin != want[i] {
			t.Errorf("%s, want %s", f.Origin, want[i])
		}
	}
}

// Words for no value leave a column one of numbers, and their rows are bad samples; among other words they are text.
func TestWordsForNoValue(t *testing.T) {
	path := write(t, "x.csv", "a,b,word,only,y\n1,0.5,x,NA,1\nNA,null,NA,None,N/A\n3,nan,z,NA,0\n")
	fields, samples, err := describe(t, path, source.Options{})
	require.NoError(t, err)
	if got := strings.Join(fields, "|"); got != "a int64()|b float32()|word uint8()* utf-8|only uint8()* utf-8|y int64()" {
		t.Errorf("fields %s", got)
	}
	if len(samples) != 3 || samples[1] != `x.csv:3: column a: it is missing` {
		t.Errorf("samples\n%s", strings.Join(samples, "\n"))
	}
}

func TestJSONL(t *testing.T) {
	inline := base64.StdEncoding.EncodeToString([]byte("PIXELS"))
	path := write(t, "x.jsonl", `{"id": "7", "a": {"b": 1, "c": [0.5]}, "img": "data:image/png;base64,`+inline+`"}`+"\n\n"+
		`{"a": {"c": [], "b": 2}, "id": null, "img": "???"}`+"\n[]\n{\"a\":\n")
	fields, samples, err := describe(t, path, source.Options{Fields: "a.b=b:uint8,a.c=c:uint8[*],id,img:base64"})
	require.NoError(t, err)
	if got := strings.Join(fields, "|"); got != "b uint8()|c uint8()*|id uint8()* utf-8|img uint8()* image" {
		t.Errorf("fields %s", got)
	}
	want := []string{
		`x.jsonl:1: column a.c: "0.5" is not a value of type uint8`, "x.jsonl:3: column img: it is not base64: illegal base64 data at input byte 0",
		"x.jsonl:4: the text is not a JSON object", "x.jsonl:5: not JSON: EOF",
	}
	if strings.Join(samples, "\n") != strings.Join(want, "\n") {
		t.Errorf("samples\n%s\nwant\n%s", strings.Join(samples, "\n"), strings.Join(want, "\n"))
	}
}

// Paths are relative to the table, and URLs are not paths.
func TestImagePaths(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tables/x.csv": "photo\n../pictures/a.png\n../pictures/b.png\nhttp://x/c.png\n", "pictures/a.png": "PIXELS",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	fields, samples, err := describe(t, filepath.Join(dir, "tables/x.csv"), source.Options{Outside: true})
	if err != nil || len(fields) != 1 || fields[0] != "photo uint8()* image" {
		t.Fatalf("%v, %v", fields, err)
	}
	if samples[0] != fmt.Sprintf("x.csv:2 %x", "PIXELS") || !strings.Contains(samples[1], "no such file") || !strings.Contains(samples[2], "is a URL; download the files first") {
		t.Errorf("samples %q", samples)
	}
}

// Several files of a glob are one table after the other.
func TestSeveralTables(t *testing.T) {
	path := write(t, "a.csv", "n\n1\n")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "b.csv"), []byte("n\n2\n3\n"), 0o666))
	_, samples, err := describe(t, filepath.Join(filepath.Dir(path), "*.csv"), source.Options{})
	if err != nil || len(samples) != 3 || !strings.HasSuffix(strings.Fields(samples[2])[0], "/b.csv:3") {
		t.Errorf("samples %q, %v", samples, err)
	}
}

func TestErrorsOfValuesAreTold(t *testing.T) {
	s, err := Open(t.Context(), write(t, "x.csv", "label,n\na,1\nb,x\n"), source.Options{Fields: "label,n:int8"})
	require.NoError(t, err)
	defer s.Close()
	v := source.NewValues(2)
	var bad error
	for sample := range s.Samples() {
		bad = sample.Data.Read(v)
	}
	if !errors.Is(bad, source.ErrValue) {
		t.Errorf("error %v is not an ErrValue", bad)
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
