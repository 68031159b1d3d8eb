package layout

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/tensor"
)

// A name that a field can have stays, and any other text becomes one.
func TestFieldName(t *testing.T) {
	for text, want := range map[string]string{
		"obs/eef_pos": "obs/eef_pos", "年龄": "年龄", "sepal length (cm)": "sepal length (cm)", "a.b": "a.b", "-x": "-x", "a//b/": "a/b",
		"": "data", "/": "data", "..": "data", "a/../b": "a/b", "a\tb": "a_b", "a\xffb": "a_b", "penstock": "penstock",
		"penstock/x": "penstock_/x", "x/zarr.json": "x", "manifest.json": "data", strings.Repeat("ö", 100): strings.Repeat("ö", 100),
	} {
		if got := FieldName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzFieldName(f *testing.F) {
	f.Add("a/b")
	f.Add(strings.Repeat("/ö", 200))
	f.Add("-")
	f.Fuzz(func(t *testing.T, text string) {
		name := FieldName(text)
		if !IsFieldName(name) || FieldName(name) != name || IsFieldName(text) && name != text {
			t.Errorf("%q: %q", text, name)
		}
		if file := FileName(name) + "-00000.npy"; !isArrayName(file) || !utf8.ValidString(file) {
			t.Errorf("%q: file %q", text, file)
		}
	})
}

// Fields whose arrays or files would have one name are refused.
func TestCheckNames(t *testing.T) {
	spec := func(name string, ragged bool) tensor.Spec { return tensor.Spec{Name: name, Ragged: ragged} }
	for _, c := range []struct {
		a, b tensor.Spec
		want string
	}{
		{spec("a", false), spec("a/b", false), "lies below"},
		{spec("a/b/c", true), spec("a", true), "lies below"},
		{spec("a", false), spec("/a", false), ""}, // no name of a field: its own error
		{spec("//a//", true), spec("/", false), "lies below"},
		{spec("a", true), spec("a.values", false), "one name"},
		{spec("年", true), spec("年.offsets", false), "one name"},
		{spec("a/b", false), spec("a/c", true), ""},
		{spec("a", false), spec("a.values", false), ""},
		{spec("a/b", false), spec("a_b", false), ""},
	} {
		err := CheckNames([]tensor.Spec{c.a, c.b})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: %v, want %q", c.a.Name, c.b.Name, err, c.want)
		}
	}
}
