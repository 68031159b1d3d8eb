package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
)

func TestBraces(t *testing.T) {
	for path, want := range map[string]string{
		"a.tar":             "a.tar",
		"a{08..11}.tar":     "a08.tar a09.tar a10.tar a11.tar",
		"a{8..11}":          "a8 a9 a10 a11",
		"{x,y}-{0..1}.tar":  "x-0.tar x-1.tar y-0.tar y-1.tar",
		"a{b}c":             "a{b}c",
		"a{b..c}":           "a{b..c}",
		"a}b{":              "a}b{",
		"a{":                "a{",
		"a{3..1}":           "counts down",
		"a{0..99999999}":    "stands for more than",
		"{0..9999}{0..999}": "stand for more than",
	} {
		list, err := braces(path)
		got := strings.Join(list, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("%s: %.100s, want %s", path, got, want)
		}
	}
}

// silent is a store that does not answer.
type silent struct{ fstest.MapFS }

func (silent) Stat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrClosed}
}

func (silent) ReadFile(string, []byte) ([]byte, error) { return nil, fs.ErrClosed }

// A path that cannot be searched is not reported as missing.
func TestWhatCannotBeLookedFor(t *testing.T) {
	t.Cleanup(vfs.Mount("mem:/lab", &silent{}))
	for _, path := range []string{"mem:/lab/photos", "mem:/lab/*.tar", "mem:/lab/{1..2}.csv"} {
		if _, err := Files(path); err == nil || !strings.Contains(err.Error(), "file already closed") {
			t.Errorf("%s: error %v", path, err)
		}
	}
	file := filepath.Join(t.TempDir(), "a.csv")
	require.NoError(t, os.WriteFile(file, []byte("x\n1\n"), 0o666))
	for path, want := range map[string]string{file + "s": "no such file or folder", file + "*s": "no file matches"} {
		if _, err := Files(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}

// Whatever braces hold, they stand for at least one path, and a path without them for itself.
func FuzzBraces(f *testing.F) {
	for _, s := range []string{"a.tar", "a{08..11}.tar", "{x,y}-{0..1}", "a{b}c", "}{", "{3..1}", "{0..99999999}", "{,}", "{..}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		list, err := braces(path)
		if err == nil && (len(list) == 0 || len(list) > maxBraces || !strings.Contains(path, "{") && list[0] != path) {
			t.Fatalf("%q stands for %d paths", path, len(list))
		}
	})
}
