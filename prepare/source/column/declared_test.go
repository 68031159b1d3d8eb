package column

import "testing"

// A loader's fields are names with any characters, until one of them declares a type or another name.
func TestDeclared(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{nil, ""},
		{[]string{"a", "b, c", "kernel:0"}, ""},
		{[]string{"image:images", "b, c"}, `image:images,"b, c"`},
		{[]string{"y=class:label", "x:float32[2,3]"}, "y=class:label,x:float32[2,3]"},
		{[]string{`"y:label"`}, `"y:label"`},
	} {
		if got := Declared(c.fields); got != c.want {
			t.Errorf("%q: %s", c.fields, got)
		}
	}
}
