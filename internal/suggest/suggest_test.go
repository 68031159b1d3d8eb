package suggest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"size", "siz", 1}, {"flaw", "lawn", 2}, {"verfy", "verify", 1}, {"imgae", "image", 1}, {"ab", "ba", 1}} {
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
		{"color", []string{"fit", "size"}, "; known are fit, size"},
		{"x", nil, "; there are none"},
		{"imgae", []string{"images", "labels"}, `; did you mean "images"?`},
		{"batch-size", []string{"epochs", "batch"}, `; did you mean "batch"?`},
	} {
		if got := Hint(c.name, c.known); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Hint("zzz", strings.Split(strings.Repeat("aaaaaa ", 25), " ")[:25]); !strings.HasSuffix(got, " and 5 more") {
		t.Errorf("many names: %q", got)
	}
}

func TestPath(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "photos"), 0o755))
	want := fmt.Sprintf("; did you mean %q?", filepath.Join(dir, "photos"))
	if got := Path(filepath.Join(dir, "photo")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Path(filepath.Join(dir, "table.csv")); got != "" {
		t.Errorf("nothing is like it: %q", got)
	}
}

func TestOneOf(t *testing.T) {
	for value, want := range map[string]string{
		"float31": `must be one of uint8, float32; did you mean "float32"?`,
		"z":       "must be one of uint8, float32",
	} {
		if got := OneOf(value, []string{"uint8", "float32"}); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
