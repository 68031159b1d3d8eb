package source

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// cellsOf returns the cells of a row as text, or its error's.
func cellsOf(each func(f func(column string, c cell)) error) (list []string) {
	err := each(func(column string, c cell) { list = append(list, fmt.Sprintf("%s=%q %v", column, c.text, c.quoted)) })
	if err != nil {
		return []string{"error " + err.Error()}
	}
	return list
}

// Rows without quotes, which are cut at once, have the cells that encoding/csv finds, wherever
// the blocks of the file end.
func TestQuickCSV(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := []string{"a", "1", ",", ",", "\n", "\n", "\r\n", "\r", " ", "\"x,y\"", "\"p\nq\"", "é", "\"\""}
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
			got := cellsOf(func(f func(string, cell)) error {
				return csvFormat{}.each(&row, func(_ int, column string, c cell) { f(column, c) })
			})
			expect := []string{fmt.Sprintf("error bad value: %d columns where the header has 2", len(record))}
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
	parts := []string{`"a"`, `"b"`, ":", ":", ":", ",", ",", "{", "}", "}", "1", "-0.5e3", "01", "1.", "true", "null", "nul", `"x y"`, `"\u00e9\n"`, "[1, [2]]", `["]"]`, "[", "]", " ", "\x01", "\xff"}
	quick := 0
	check := func(text string) {
		want := cellsOf(func(f func(string, cell)) error { return eachMember([]byte(text), "", 0, f) })
		var got []string
		q := quickJSON{text: text, f: func(_ int, column string, c cell) {
			got = append(got, fmt.Sprintf("%s=%q %v", column, c.text, c.quoted))
		}}
		if q.object("", 0) && q.blank() == 0 {
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
	for _, text := range []string{`{"a": 1, "b": {"c": [1, [2, 3]], "d": "x"}, "e": null}`, `{}`, `{"a":"é"}`, `{"a":[]} x`, `{"a":1,}`, `{"a" 1}`, `{"a":1 "b":2}`} {
		check(text)
	}
	if quick < 500 {
		t.Errorf("%d objects were read the quick way", quick)
	}
}

// What several goroutines guess of their rows makes the type that one guesses of all.
func TestGuessesMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	words := []string{"1", "-7", "0.5", "1e3", "007", "18446744073709551615", "99999999999999999999", "true", "False", "", " 4 ", "x", "cat.png", "[1,2]", "[1,2,3]", "[]", "1 2", "[[1],[2]]", "[1.5]", "-", "1.", ".5", "123456789012345678901.5"}
	for range 50_000 {
		few := words[rng.IntN(len(words)):]
		few = few[:min(len(few), 1+rng.IntN(4))]
		var list []cell
		for range 1 + rng.IntN(6) {
			list = append(list, cell{text: few[rng.IntN(len(few))], quoted: rng.IntN(20) == 0})
		}
		var all, a, b guess
		cut := rng.IntN(len(list) + 1)
		for i, c := range list {
			all.add(c)
			if i < cut {
				a.add(c)
			} else {
				b.add(c)
			}
		}
		a.merge(&b)
		if got, want := a.result("c"), all.result("c"); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v cut at %d: %v, want %v", list, cut, got, want)
		}
	}
}
