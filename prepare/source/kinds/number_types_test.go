package kinds

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source"
)

// A column of numbers gets a type that holds its integers, wherever in the table they are, alone and joined with others.
func TestTypesThatHoldNumbers(t *testing.T) {
	rows := strings.Repeat("1,1.0,1\n", 3000)
	for text, want := range map[string]string{
		"a,b,c\n" + rows + "16777217,nan,0.5\n":      "a int64()|b float32()|c float32()",
		"a,b,c\n" + rows + "1,16777217,0.5\n":        "a int64()|b float64()|c float32()",
		"a,b,c\n0.5,9007199254740993,0.5\n" + rows:   "a float32()|b text|c float32()",
		"a,b,c\n9007199254740993,1.5,1_2\n" + rows:   "a int64()|b float32()|c text",
		"a,b,c\n18446744073709551615,1,1\n" + rows:   "a uint64()|b float32()|c int64()",
		"a,b,c\n18446744073709551615,1,1\nnan,1,2\n": "a text|b int64()|c int64()",
		"a,b,c\n18446744073709551616,1,1\n0.5,1,2\n": "a float64()|b int64()|c int64()", // 2^64
	} {
		for _, name := range []string{"x.csv", "x.jsonl"} {
			fields, _, err := describe(t, write(t, name, asTable(name, text)), source.Options{})
			got := strings.ReplaceAll(strings.Join(fields, "|"), "uint8()* utf-8", "text")
			if err != nil || got != want {
				t.Errorf("%s: %.60q: %s, %v, want %s", name, text, got, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		"a,b,c\n16777217,1,0.5\n" + rows:      "x float64(3,)",
		"a,b,c\n16777216,1,0.5\n" + rows:      "x float32(3,)",
		"a,b,c\n9007199254740993,1,1\n":       "x int64(3,)",
		"a,b,c\n9007199254740993,1,0.5\n":     "no type holds the numbers of all columns",
		"a,b,c\n18446744073709551615,-1,1\n":  "no type holds the numbers of all columns",
		"a,b,c\n18446744073709551615,1,1\n":   "x uint64(3,)",
		"a,b,c\ntrue,1,0.5\nfalse,2,1\n":      "x float32(3,)",
		"a,b,c\ntrue,false,5\nfalse,true,1\n": "x int64(3,)",
	} {
		fields, _, err := describe(t, write(t, "x.csv", text), source.Options{Fields: "a+b+c=x"})
		if got := strings.Join(fields, "|"); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// asTable returns a table of plain CSV cells in the format that the name of a file says. JSON has 0.5 for nan, and quotes
// around 1_2.
func asTable(name, text string) string {
	if strings.HasSuffix(name, ".csv") {
		return text
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	header := strings.Split(lines[0], ",")
	var b strings.Builder
	for _, line := range lines[1:] {
		b.WriteByte('{')
		for i, cell := range strings.Split(line, ",") {
			if cell == "1_2" {
				cell = `"1_2"`
			}
			b.WriteString([]string{"", ","}[min(i, 1)] + `"` + header[i] + `":` + strings.ReplaceAll(cell, "nan", "0.5"))
		}
		b.WriteString("}\n")
	}
	return b.String()
}
