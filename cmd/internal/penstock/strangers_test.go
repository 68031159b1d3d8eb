package penstock

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// A name of a file or class reaches neither a line of its own in an answer nor the controls of a terminal or page.
func TestNamesOfStrangers(t *testing.T) {
	const odd = "\nforged\x1b[31m\u202e\u009b"
	schema := datasettest.SchemaOf(tensor.Uint8, tensor.CHW, "cat"+odd, "dog"+odd)
	fill := func(i int, values [][]byte) { values[0][0], values[1][0] = byte(i), byte(i%2) }
	ds := filepath.Join(t.TempDir(), "ds"+odd)
	require.NoError(t, os.Rename(datasettest.Build(t, schema, 8, store.Info{}, fill), ds))
	dir := t.TempDir()
	report, bench := filepath.Join(dir, "report.html"), filepath.Join(dir, "bench.svg")
	view, preview := filepath.Join(dir, "a"+odd+".view.json"), filepath.Join(dir, "p"+odd+".png")
	scores := filepath.Join(dir, "scores.csv")
	require.NoError(t, os.WriteFile(scores, []byte("twice\n1\n2\n3\n4\n5\n6\n7\n8\n"), 0o666))
	for _, args := range [][]string{
		{"inspect", ds}, {"inspect", "stats", ds}, {"inspect", "show", ds, "0"}, {"inspect", "layout", ds}, {"inspect", "verify", ds},
		{"inspect", "diff", ds, ds}, {"inspect", "filter", "-o", view, ds, "labels == 0"}, {"inspect", view},
		{"inspect", "report", "-o", report, ds}, {"inspect", "preview", "-o", preview, ds}, {"loadbench", "-q", "--batches", "2", "--plot", bench, ds},
		{"log", ds}, {"delete", "--records", "0", ds}, {"restore", "--deleted", ds}, {"restore", ds + "@1"}, {"tag", ds, "first"}, {"log", ds},
		{"column", "add", ds, "twice", scores}, {"prune", ds},
	} {
		code, out, diag := run(t, args...)
		if code != cli.ExitDone {
			t.Errorf("%q: code %d: %s", args, code, diag)
		}
		checkShown(t, args[0], out)
		checkShown(t, args[0], diag)
	}
	for _, page := range []string{report, bench} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		if at := bytes.IndexFunc(text, obeyed); at >= 0 {
			t.Errorf("%s: %.80q", page, text[at:])
		}
	}
}

func checkShown(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "forged") || strings.ContainsFunc(line, obeyed) {
			t.Errorf("%s: %q", what, line)
		}
	}
}

func obeyed(r rune) bool { return r != '\t' && r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }
