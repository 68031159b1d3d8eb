package column

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// The guesses of several goroutines merge to the guess of one.
func TestGuessesMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	words := []string{"1", "16777217", "9007199254740993", "1e39", "nan", "[16777217,2]", "-7", "0.5", "1e3", "007", "18446744073709551615", "99999999999999999999", "true", "False", "", " 4 ", "x", "cat.png", `["a.png"]`, "[1,2]", "[1,2,3]", "[]", "1 2", "[[1],[2]]", "[1.5]", "-", "1.", ".5", "123456789012345678901.5", "0.12345678901234567", "-1.2345678901234567e-05", "1E+9", "2e-99", "-0.00012345678901234567", "1e"}
	for range 50_000 {
		few := words[rng.IntN(len(words)):]
		few = few[:min(len(few), 1+rng.IntN(4))]
		var list []Cell
		for range 1 + rng.IntN(6) {
			list = append(list, Cell{Text: few[rng.IntN(len(few))], Quoted: rng.IntN(20) == 0})
		}
		var all, a, b Guess
		cut := rng.IntN(len(list) + 1)
		for i, c := range list {
			all.Add(c)
			if i < cut {
				a.Add(c)
			} else {
				b.Add(c)
			}
		}
		a.Merge(&b)
		if got, want := a.Result("c"), all.Result("c"); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v cut at %d: %v, want %v", list, cut, got, want)
		}
	}
}

func TestGuess(t *testing.T) {
	cases := []struct {
		column string
		cells  []string
		want   string
	}{
		{"n", []string{"1", "", "-3"}, "int64"},
		{"n", []string{"1", "2.5"}, "float32"},
		{"n", []string{"1", "nan"}, "float32"},
		{"n", []string{"", ""}, "text"},
		{"n", []string{"a.jpg", "b/c.PNG"}, "image"},
		{"n", []string{"a.jpg", "b"}, "text"},
		{"n", []string{`["a.jpg"]`, `["b.jpg", "c.png"]`}, "images"},
		{"n", []string{"a.jpg", `["b.jpg", "c.png"]`}, "images"},
		{"n", []string{"[]", "", "a.jpg"}, "images"},
		{"n", []string{"a.jpg", `["b.jpg", "c"]`}, "text"},
		{"n", []string{"a.jpg", `["b.jpg"]`, "c"}, "text"},
		{"n", []string{"[]", "[]"}, "int64[*]"},
		{"label", []string{"cat", "dog"}, "label"},
		{"x.Class", []string{"cat"}, "label"},
		{"label", []string{"3", "4"}, "int64"},
		{"v", []string{"[1,2]", "[3,4]"}, "int64[2]"},
		{"v", []string{"[1,2]", "[3.5,4]"}, "float32[2]"},
		{"v", []string{"[1,2]", "[3]"}, "int64[*]"},
		{"v", []string{"[]", "[[1,2]]"}, "int64[*,2]"},
		{"v", []string{"[[1,2]]", "[]", "[[1,2],[3,4]]"}, "int64[*,2]"},
		{"v", []string{"[[1,2]]", "[[1,2,3]]"}, "text"},
		{"v", []string{"[]", ""}, "int64[*]"},
		{"v", []string{"[1", "2"}, "text"},
		{"v", []string{"[1]", "2"}, "text"},
		{"ids", []string{"1 2 3", "4", "", "5 6"}, "int64[*]"},
		{"ids", []string{"4", "5 6"}, "int64[*]"},
		{"pixels", []string{"1 2 3", "4 5 6"}, "int64[3]"},
		{"v", []string{"0.5 1", "-2;3e4"}, "float32[2]"},
		{"v", []string{"1 2", "a b"}, "text"},
		{"v", []string{"[1,2]", "1 2"}, "text"},
		{"v", []string{"1 2", "[1,2]"}, "text"},
		{"tel", []string{"0412 3456", "12 34"}, "text"},
		{"day", []string{"2024 01 02"}, "text"},
		{"v", []string{" ", "\t"}, "text"},
		{"v", []string{"5;", "6;"}, "text"},
		{"v", []string{";", "7", "8"}, "text"},
		{"n", []string{" 5", "6 "}, "int64"},
		{"v", []string{"inf nan"}, "text"},
		{"n", []string{"9223372036854775808", "1"}, "uint64"},
		{"n", []string{"9223372036854775808", "-1"}, "text"},
		{"n", []string{"18446744073709551616"}, "text"},
		{"n", []string{"9223372036854775808", "1.5"}, "float64"},
		{"n", []string{"1.5", "9223372036854775808"}, "float64"},
		{"id", []string{"123456789", "nan"}, "float64"},
		{"id", []string{"nan", "16777217"}, "float64"},
		{"id", []string{"16777216", "1.0"}, "float32"},
		{"id", []string{"9007199254740992", "0.5"}, "float64"},
		{"id", []string{"9007199254740993", "0.5"}, "text"},
		{"id", []string{"-1.5", "+009007199254740993"}, "text"},
		{"id", []string{"9007199254740993", "1"}, "int64"},
		{"id", []string{"123456789012345678901"}, "text"},
		{"t", []string{"1700000000.25", "1"}, "float64"},
		{"x", []string{"1e39", "1"}, "float64"},
		{"x", []string{"1e-39", "1"}, "float64"},
		{"x", []string{"1e400", "1"}, "text"},
		{"x", []string{"-inf", "NaN", "0.1"}, "float32"},
		{"v", []string{"[1, 16777217]", "[0.5, 2]"}, "float64[2]"},
		{"v", []string{"[1, 9007199254740993]", "[0.5, 2]"}, "text"},
		{"v", []string{"[1, 9007199254740993]", "[2, 3]"}, "int64[2]"},
		{"id", []string{"1_23", "12_3"}, "text"},
		{"id", []string{"0x1p4", "1.5"}, "text"},
	}
	for _, c := range cases {
		var g Guess
		for _, text := range c.cells {
			g.Add(Cell{Text: text})
		}
		if got := g.Result(c.column).String(); got != c.want {
			t.Errorf("%s of %q is %s, want %s", c.column, c.cells, got, c.want)
		}
	}
}

// Whatever a cell holds, the type that is guessed for it is one that reads it.
func FuzzGuess(f *testing.F) {
	for _, s := range []string{"1", "1.5", "[1,2]", "[[1,2],[3,4]]", "[]", "a.jpg", "[1e400]", "[[[]]]", "true", "0x1p-2", "1_000", "[[],[]]", "+7", "5;", " 5", "1 2;3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var g Guess
		c := Cell{Text: text}
		g.Add(c)
		typ := g.Result("x")
		field := typ.FieldOf("x")
		if err := (store.Schema{Fields: []store.Field{field.Field}}).Validate(); err != nil {
			t.Fatalf("%q is taken for %v, which is not a field: %v", text, typ, err)
		}
		if typ.Kind == ImagePath {
			return
		}
		v := source.NewValues(1)
		if err := typ.Put(v, 0, c, source.File{}); err != nil {
			t.Fatalf("%q is taken for %v, but: %v", text, typ, err)
		}
		if field.Ragged && len(v.Get(0))%field.RecordBytes() != 0 || !field.Ragged && len(v.Get(0)) != field.RecordBytes() {
			t.Fatalf("%q as %v makes %d bytes", text, typ, len(v.Get(0)))
		}
	})
}
