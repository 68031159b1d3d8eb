package table

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// cellsOf returns the cells of a row as text, or its error's.
func cellsOf(each func(f func(column string, c column.Cell)) error) (list []string) {
	err := each(func(column string, c column.Cell) {
		list = append(list, fmt.Sprintf("%s=%q %v", column, strings.ReplaceAll(c.Text, "\r\n", "\n"), c.Quoted))
	})
	if err != nil {
		return []string{"error " + err.Error()}
	}
	return list
}

// Rows have the cells that encoding/csv finds, wherever the blocks of the file end, but for the line ends in quotes,
// which that changes.
func TestQuickCSV(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := []string{"a", "1", ",", ",", "\n", "\n", "\r\n", "\r", " ", "\"x,y\"", "\"p\nq\"", "\"p\r\nq\"", "é", "\"\""}
	for range 3000 {
		text := "k,l\n"
		for range rng.IntN(30) {
			text += alphabet[rng.IntN(len(alphabet))]
		}
		std := csv.NewReader(strings.NewReader(text))
		std.FieldsPerRecord = -1
		want, err := std.ReadAll()
		if err != nil {
			continue // how a row is bad is for TestTables
		}
		rows, err := csvFormat{}.open(iotest.OneByteReader(strings.NewReader(text)))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, record := range want[1:] {
			var row tableRow
			if err := rows.next(&row); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			row.file = &tableFile{header: rows.columns()}
			got := cellsOf(func(f func(string, column.Cell)) error {
				return csvFormat{}.each(&row, func(_ int, column string, c column.Cell) { f(column, c) })
			})
			expect := []string{fmt.Sprintf("error the row has %d columns, but the header has 2", len(record))}
			if len(record) == 2 {
				expect = []string{fmt.Sprintf("k=%q false", record[0]), fmt.Sprintf("l=%q false", record[1])}
			}
			if !slices.Equal(got, expect) {
				t.Fatalf("%q: %q, want %q", text, got, expect)
			}
		}
		if err := rows.next(new(tableRow)); err == nil {
			t.Fatalf("%q: more rows than %q", text, want)
		}
	}
}

// The quick way through a JSON object finds what encoding/json finds, or leaves it to that.
func TestQuickJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	parts := []string{`"a"`, `"b"`, ":", ":", ":", ",", ",", "{", "}", "}", "1", "-0.5e3", "01", "1.", "true", "null", "nul", `"x y"`, `"\u00e9\n"`, "[1, [2]]", `["]"]`, "[", "]", " ", "\x00", "\x01", "\xff"}
	quick := 0
	check := func(text string) {
		want := cellsOf(func(f func(string, column.Cell)) error { return column.EachMember([]byte(text), "", 0, f) })
		var got []string
		q := quickJSON{text: text, keys: []string{"a", "b"}[:rng.IntN(3)], f: func(_ int, column string, c column.Cell) {
			got = append(got, fmt.Sprintf("%s=%q %v", column, c.Text, c.Quoted))
		}}
		if q.whole() {
			if quick++; !slices.Equal(got, want) {
				t.Fatalf("%q: %q, want %q", text, got, want)
			}
		}
	}
	for range 200_000 {
		text := "{"
		for range rng.IntN(9) {
			text += parts[rng.IntN(len(parts))]
		}
		check(text + "}")
	}
	for _, text := range []string{`{"a": 1, "b": {"c": [1, [2, 3]], "d": "x"}, "e": null}`, `{}`, `{"a":"é"}`, `{"a":[]} x`, `{"a":1,}`, `{"a" 1}`, `{"a":1 "b":2}`, "{\"a\":1}\x00{\"a\":2}", "{}\x00", "{\"a\":\x001}"} {
		check(text)
	}
	if quick < 500 {
		t.Errorf("%d objects were read the quick way", quick)
	}
}

// TestCount counts rows by their lines, as a scan does that takes them apart.
func TestCount(t *testing.T) {
	for name, text := range map[string]string{
		"a.csv":   "a,b\n1,2\n\n3,4\r\n\r\n\"5\n\",6\n-1,é\né,2",
		"b.csv":   "\ufeffa\tb\n1\t2\n\t\n3\t4\n",
		"a.jsonl": "\ufeff{\"a\":1}\n \n{\"a\":2}\r\n\n\t{\"a\":3}\n{\"a\":4}",
		"b.jsonl": "{\"a\":1}\n" + strings.Repeat("{\"a\":1}\n\n", 40_000),
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		open := OpenCSV
		if strings.HasSuffix(name, "l") {
			open = OpenJSONL
		}
		count := func(selection ...column.Selection) (int64, int64) {
			seen := int64(0)
			src, err := open(t.Context(), rootOf(t, path), path, source.Options{Seen: func(n int64) { seen += n }}, selection)
			require.NoError(t, err)
			return src.Info().Count, seen
		}
		want, _ := count()
		if got, seen := count(column.Selection{Column: "a", Type: "int64"}); got != want || seen != want || got < 3 {
			t.Errorf("%s: %d rows, %d seen, want %d", name, got, seen, want)
		}
	}
}
