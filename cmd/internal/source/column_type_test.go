package source

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestParseType(t *testing.T) {
	for _, name := range []string{
		"image", "base64", "label", "text", "bool", "uint8", "int64", "float16", "bfloat16", "float64", "float32[4]", "float32[2,3]", "int64[*]", "float32[*,4]",
	} {
		typ, err := parseType(name)
		if err != nil || typ.String() != name {
			t.Errorf("%s is read as %v, %v", name, typ, err)
		}
	}
	for name, want := range map[string]string{
		"txt": `did you mean "text"?`, "float": `did you mean "float64"?`, "picture": "known are base64, image, label, text, float64, float32,", "int64[": "axes are written as", "int64[0]": "axes are written as",
		"int64[2,*]": "axes are written as", "int64[x]": "axes are written as", "": "unknown type", "int8[1,1,1,1,1,1,1,1]": "axes",
	} {
		if _, err := parseType(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
	}
}

func TestParseFields(t *testing.T) {
	list, err := ParseFields("a, b=x:float32[*,4],c:label , d=e")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range list {
		got = append(got, w.String())
	}
	if want := "a|b=x:float32[*,4]|c:label|d=e"; strings.Join(got, "|") != want {
		t.Errorf("read %q, want %q", got, want)
	}
	for text, want := range map[string]string{
		"a,,b": "names no column", "a=:int8": "letters, digits", "a=b c": "letters, digits", "a:img": "unknown type", "a,b=a": "both the field", "=x": "names no column",
	} {
		if _, err := ParseFields(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Cells become numbers of the column's type and shape, or a bad value.
func TestNumbers(t *testing.T) {
	cases := []struct {
		typ, cell string
		want      []byte // nil: a bad value
	}{
		{"uint8", "7", []byte{7}},
		{"uint8", " 7 ", []byte{7}},
		{"uint8", "256", nil},
		{"uint8", "-1", nil},
		{"uint8", "1.0", nil},
		{"uint8", "[7]", []byte{7}},
		{"uint8", "[7,8]", nil},
		{"uint8", "", nil},
		{"int8", "-128", []byte{128}},
		{"bool", "true", []byte{1}},
		{"bool", "False", []byte{0}},
		{"bool", "2", nil},
		{"int16", "-2", []byte{0xfe, 0xff}},
		{"uint64", "18446744073709551615", bytes.Repeat([]byte{255}, 8)},
		{"int64", "9223372036854775808", nil},
		{"float32", "1", []byte{0, 0, 0x80, 0x3f}},
		{"float32", "1e99", nil},
		{"float16", "1", []byte{0, 0x3c}},
		{"bfloat16", "1", []byte{0x80, 0x3f}},
		{"float32", "x", nil},
		{"uint8[3]", "[1, 2,3]", []byte{1, 2, 3}},
		{"uint8[3]", "1 2;3", []byte{1, 2, 3}},
		{"uint8[3]", "[1,2]", nil},
		{"uint8[3]", "[[1,2,3]]", nil},
		{"uint8[2,2]", "[[1,2],[3,4]]", []byte{1, 2, 3, 4}},
		{"uint8[2,2]", "[1,2,3,4]", []byte{1, 2, 3, 4}},
		{"uint8[2,2]", "[[1,2],[3]]", nil},
		{"uint8[*]", "[]", []byte{}},
		{"uint8[*]", "", []byte{}},
		{"uint8[*]", "[5]", []byte{5}},
		{"uint8[*]", "[[5]]", nil},
		{"uint8[*,2]", "[[1,2],[3,4]]", []byte{1, 2, 3, 4}},
		{"uint8[*,2]", "[1,2,3,4]", []byte{1, 2, 3, 4}},
		{"uint8[*,2]", "[1,2,3]", nil},
		{"uint8[*,2]", "[[1,2,3]]", nil},
		{"uint8[*]", "[1,2", nil},
		{"uint8[*]", "[1 2]", nil},
		{"uint8[*]", "[1,2] 3", nil},
		{"uint8[*]", "[1,,2]", nil},
		{"uint8[*]", strings.Repeat("[", 100), nil},
	}
	for _, c := range cases {
		typ, err := parseType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		v := NewValues(1)
		err = typ.put(v, 0, cell{text: c.cell}, fence{})
		switch {
		case c.want == nil && !errors.Is(err, ErrValue):
			t.Errorf("%q as %s: %v, %v; want a bad value", c.cell, c.typ, v.Get(0), err)
		case c.want != nil && (err != nil || !bytes.Equal(v.Get(0), c.want)):
			t.Errorf("%q as %s: %v, %v; want %v", c.cell, c.typ, v.Get(0), err, c.want)
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
		{"n", []string{" 5", "6 "}, "int64"},
		{"v", []string{"inf nan"}, "text"},
		{"n", []string{"9223372036854775808", "1"}, "uint64"},
		{"n", []string{"9223372036854775808", "-1"}, "text"},
		{"n", []string{"18446744073709551616"}, "text"},
		{"n", []string{"9223372036854775808", "1.5"}, "float32"},
		{"n", []string{"1.5", "9223372036854775808"}, "float32"},
	}
	for _, c := range cases {
		var g guess
		for _, text := range c.cells {
			g.add(cell{text: text})
		}
		if got := g.result(c.column).String(); got != c.want {
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
		var g guess
		c := cell{text: text}
		g.add(c)
		typ := g.result("x")
		field := typ.field("x")
		if err := (store.Schema{Fields: []store.Field{field.Field}}).Validate(); err != nil {
			t.Fatalf("%q is taken for %v, which is no field: %v", text, typ, err)
		}
		if typ.kind == imagePath {
			return
		}
		v := NewValues(1)
		if err := typ.put(v, 0, c, fence{}); err != nil {
			t.Fatalf("%q is taken for %v, but: %v", text, typ, err)
		}
		if field.Ragged && len(v.Get(0))%field.RecordBytes() != 0 || !field.Ragged && len(v.Get(0)) != field.RecordBytes() {
			t.Fatalf("%q as %v makes %d bytes", text, typ, len(v.Get(0)))
		}
	})
}

// Whatever a type is called, what is read of it can be written and read again.
func FuzzParseFields(f *testing.F) {
	for _, s := range []string{"a=b:int8[*,2]", "a,b", "a:[", "a=b=c:d:text", ",", "x:float32[1,2,3]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseFields(text)
		if err != nil {
			return
		}
		for _, w := range list {
			again, err := ParseFields(w.String())
			if err != nil || len(again) != 1 || again[0] != w {
				t.Fatalf("%q gives %+v, and that %+v, %v", text, w, again, err)
			}
		}
	})
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"[1,2]", "1 2", "[[1],[2]]", "[", "[,]", "1e5", "[[[[[[[[[[1]]]]]]]]]]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := list{rest: text}
		dims, b, err := l.numbers(nil, tensor.Float64)
		if err != nil {
			return
		}
		if n := tensor.Shape(dims).Elems(); len(b) != 8*l.count || n != l.count && l.count > 0 {
			t.Fatalf("%q: %d numbers of shape %v in %d bytes", text, l.count, dims, len(b))
		}
	})
}
