package kinds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// A folder of arrays that holds other data as well would lose it, so that --from has to say what is meant.
func TestMixedFolders(t *testing.T) {
	header := "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"
	array := "\x93NUMPY\x01\x00\x76\x00" + header + strings.Repeat(" ", 117-len(header)) + "\n" + "ab"
	for _, c := range []struct {
		other string
		want  string // "" if it is not data
	}{
		{"x.png", "also x.png, which would be left out; --from npy takes the .npy files alone"},
		{"cat/x.JPG", "also cat/x.JPG"},
		{"c.csv", "also c.csv"},
		{"c.npz", "also c.npz"},
		{"a.tar.gz", "also a.tar.gz"},
		{"more/b.npy", "also more/b.npy"},
		{"README.md", ""}, {".cache/x.png", ""}, {"._x.png", ""}, {"info.json", ""}, {"more/notes.txt", ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"a.npy": array, c.other: "x"} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		}
		s, err := Open(t.Context(), dir, source.Options{})
		if err == nil {
			s.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.other, err, c.want)
		}
		if s, err = Open(t.Context(), dir, source.Options{Kind: "npy"}); err != nil {
			t.Errorf("%s, --from npy: %v", c.other, err)
			continue
		}
		if s.Info().Count != 2 {
			t.Errorf("%s: %d records", c.other, s.Info().Count)
		}
		s.Close()
	}
}
