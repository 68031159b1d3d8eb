package suggest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"size", "siz", 1}, {"flaw", "lawn", 2}} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != c.want {
			t.Errorf("%q, %q: %d and %d, want %d", c.a, c.b, got, Distance(c.b, c.a), c.want)
		}
	}
}

func TestHint(t *testing.T) {
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"Siz", []string{"fit", "size"}, `; did you mean "size"?`},
		{"colour", []string{"fit", "size"}, "; known are fit, size"},
		{"x", nil, "; there are none"},
	} {
		if got := Hint(c.name, c.known); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Hint("zzz", strings.Split(strings.Repeat("aaaaaa ", 25), " ")[:25]); !strings.HasSuffix(got, " and 5 more") {
		t.Errorf("many names: %q", got)
	}
}
