package layout

import (
	"regexp"
	"strings"
	"testing"
)

// TestIsFieldName compares with a pattern.
func TestIsFieldName(t *testing.T) {
	pattern := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$`)
	names := []string{"", strings.Repeat("a", 100), strings.Repeat("a", 101), "a\n", "é", "a\x80"}
	for c := range 256 {
		names = append(names, string([]byte{byte(c)}), string([]byte{'x', byte(c)}))
	}
	for _, name := range names {
		if got, want := IsName(name), pattern.MatchString(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
