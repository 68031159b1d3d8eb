package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// A command line that a program prints can be pasted: it begins with penstock in penstock, which may be the only
// program that is installed, and with the command in programs that are one command each.
func TestHintsRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the lines are for a shell of Unix")
	}
	one, all := programs(t, "penstock"), programs(t, "preprocess", "inspect")
	raw, err := filepath.Abs("../../testdata/raw")
	require.NoError(t, err)
	for _, c := range []struct{ name, bin, prefix string }{{"one program", one, "penstock "}, {"a program a command", all, ""}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("PATH", c.bin+string(os.PathListSeparator)+"/usr/bin"+string(os.PathListSeparator)+"/bin")
			shell(t, dir, "ln -s "+raw+" photos; mkdir 'my csv' bins; printf 'x,y\n1,2\n' | tee 'my csv/1.csv' > 'my csv/2.csv'; printf 01234567 > bins/0.bin")
			for _, step := range []struct{ line, hint, want string }{
				{"preprocess photos 'my ds' --resize 8x8 2>&1", `Look at it with: (.*)`, "inspect 'my ds'"},
				{"inspect layout photos 2>&1 || true", `run: (.*)`, "preprocess --keep-encoded photos photos.h5"},
				{"inspect photos 2>&1 || true", `run: (.*)`, "preprocess --keep-encoded photos photos-ds"},
				{"inspect 'my csv/*.csv'", `run: (.*)`, "preprocess 'my csv/*.csv' 'my csv-ds'"},
				{"inspect bins --records '*.bin:uint8[*,4]'", `run: (.*)`, "preprocess 'bins::*.bin:uint8[*,4]' bins-ds"},
				{"preprocess photos parts --resize 8x8 --rank 0 --world-size 1 2>&1", `are complete: (.*)`, "preprocess merge parts"},
			} {
				out := shell(t, dir, c.prefix+step.line)
				m := regexp.MustCompile(step.hint).FindStringSubmatch(out)
				if m == nil || m[1] != c.prefix+step.want {
					t.Errorf("%s: the hint is %q, want %s%s, in\n%s", step.line, m, c.prefix, step.want, out)
					continue
				}
				if !strings.Contains(step.line, "--rank") { // what it says is run once
					shell(t, dir, m[1])
				}
			}
		})
	}
}
