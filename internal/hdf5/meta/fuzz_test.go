package meta

import "testing"

// FuzzOpen corrupts the small files further; checksums do not count, so that the code after them is reached.
func FuzzOpen(f *testing.F) {
	for _, b := range smallFiles(f) {
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Add(buildGroups([]map[string]int{{"self": 0, "a": 1}, {"b": 2}, {"up": 1, "root": 0}}), true)
	f.Fuzz(func(t *testing.T, b []byte, lax bool) {
		if len(b) > 1<<16 {
			t.Skip("larger than what finds more")
		}
		_, _ = exercise(t, b, lax)
	})
}
