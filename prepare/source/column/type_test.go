package column

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

func TestParseType(t *testing.T) {
	for _, name := range []string{
		"image", "base64", "label", "text", "bool", "uint8", "int64", "float16", "bfloat16", "float64", "float32[4]", "float32[2,3]", "int64[*]", "float32[*,4]",
	} {
		typ, err := ParseType(name)
		if err != nil || typ.String() != name {
			t.Errorf("%s is read as %v, %v", name, typ, err)
		}
	}
	for name, want := range map[string]string{
		"txt": `did you mean "text"?`, "float": `did you mean "float64"?`, "picture": "known are base64, image, images, label, text, float64, float32,", "int64[": "axes are written as", "int64[0]": "axes are written as",
		"int64[2,*]": "axes are written as", "int64[x]": "axes are written as", "": "unknown type", "int8[1,1,1,1,1,1,1,1]": "axes",
	} {
		if _, err := ParseType(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
	}
}

func TestParseFields(t *testing.T) {
	list, err := ParseFields(`a, b=x:float32[*,4],c:label , d=e, "price, EUR"=p:int8, "5"" disk":label`)
	require.NoError(t, err)
	var got []string
	for _, w := range list {
		got = append(got, w.String())
	}
	if want := `a|b=x:float32[*,4]|c:label|d=e|"price, EUR"=p:int8|5" disk:label`; strings.Join(got, "|") != want {
		t.Errorf("read %q, want %q", got, want)
	}
	for text, want := range map[string]string{
		"a,,b": "names no column", "a=:int8": "a name is 1 to", "a=b//c": "a name is 1 to", "a:img": "unknown type", "a,b=a": "both the field", "=x": "names no column",
		`"a"b=c`: `write "COLUMN"=FIELD:TYPE`, `""=c`: "names no column",
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
		{"uint8", "+5", []byte{5}},
		{"uint8", "++5", nil},
		{"uint8", "+-5", nil},
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
		{"float16", "65504", []byte{0xff, 0x7b}},
		{"float16", "70000", nil},
		{"float16", "1.00048828125", []byte{0, 0x3c}}, // half-way, and no further
		{"float16", "1.0004882812500000000001", []byte{1, 0x3c}},
		{"float16", "-65520", nil},
		{"float16", "inf", []byte{0, 0x7c}},
		{"float16", "-inf", []byte{0, 0xfc}},
		{"bfloat16", "-inf", []byte{0x80, 0xff}},
		{"bfloat16", "3.4e38", nil},
		{"bfloat16", "3.38e38", []byte{0x7e, 0x7f}},
		{"float16[2]", "[1, 1e5]", nil},
		{"float64", "1_0", nil},
		{"float32", "0x1p4", nil},
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
		typ, err := ParseType(c.typ)
		require.NoError(t, err)
		v := source.NewValues(1)
		err = typ.Put(v, 0, Cell{Text: c.cell}, source.File{})
		switch {
		case c.want == nil && !errors.Is(err, source.ErrValue):
			t.Errorf("%q as %s: %v, %v; want a bad value", c.cell, c.typ, v.Get(0), err)
		case c.want != nil && (err != nil || !bytes.Equal(v.Get(0), c.want)):
			t.Errorf("%q as %s: %v, %v; want %v", c.cell, c.typ, v.Get(0), err, c.want)
		}
	}
}

// Whatever a type is called, what is read of it can be written and read again.
func FuzzParseFields(f *testing.F) {
	for _, s := range []string{"a=b:int8[*,2]", "a,b", "a:[", "a=b=c:d:text", ",", "x:float32[1,2,3]", `"a,b"=c:int8,d`, `"a""b"`, `" a"`} {
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
		l := numberList{rest: text}
		dims, b, err := l.numbers(nil, tensor.Float64)
		if err != nil {
			return
		}
		if n := tensor.Shape(dims).Elems(); len(b) != 8*l.count || n != l.count && l.count > 0 {
			t.Fatalf("%q: %d numbers of shape %v in %d bytes", text, l.count, dims, len(b))
		}
	})
}
