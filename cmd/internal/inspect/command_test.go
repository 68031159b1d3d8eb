package inspect

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
)

func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd := Command()
	cmd.SetContext(ctx)
	code = cli.Run(cmd, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	whole, broken := datasettest.Animals(t), datasettest.Animals(t)
	datasettest.Rewrite(t, filepath.Join(broken, "images-00000.npy"), datasettest.Flip(layout.HeaderBytes))
	out, page := filepath.Join(t.TempDir(), "x.png"), filepath.Join(t.TempDir(), "x.html")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{whole}, 0},
		{[]string{broken}, 0}, // a summary reads no records
		{[]string{"verify", whole}, 0},
		{[]string{"verify", broken}, 1},
		{[]string{"verify", "--json", broken}, 1},
		{[]string{"layout", whole}, 0},
		{[]string{"preview", "-o", out, whole}, 0},
		{[]string{"show", whole, "0", "590:"}, 0},
		{[]string{"show", whole, "600"}, 1},
		{[]string{"show", "--manifest", whole}, 0},
		{[]string{"show", "--recipe", whole}, 1},
		{[]string{"stats", "--quiet", broken}, 0}, // it reports, but does not verify
		{[]string{"diff", whole, whole}, 0},
		{[]string{"diff", whole, broken}, 1},
		{[]string{"diff", "--json", "--data", whole, broken}, 1},
		{[]string{"report", "-o", page, whole}, 0},
		{[]string{"report", "-o", page, "--field", "labels", whole}, 0},
		{[]string{"nowhere"}, 1},
		{[]string{"preview", "-o", filepath.Join(out, "x.png"), whole}, 1},
		{[]string{}, 2},
		{[]string{"--nonsense", whole}, 2},
		{[]string{"preview", whole}, 2},
		{[]string{"preview", "-o", out, "--count", "many", whole}, 2},
		{[]string{"verify", whole, broken}, 2},
		{[]string{"show", whole, "9:1"}, 2},
		{[]string{"stats"}, 2},
		{[]string{"diff", whole}, 2},
		{[]string{"report", whole}, 2},
		{[]string{"--help"}, 0},
		{[]string{"--version"}, 0},
	} {
		if code, _, errs := run(context.Background(), c.args...); code != c.want || (code == 0) != (errs == "") {
			t.Errorf("%q: exit code %d, want %d; stderr %q", c.args, code, c.want, errs)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cli.ErrInterrupted)
	dir := t.TempDir()
	for _, args := range [][]string{{"verify"}, {"preview", "-o", filepath.Join(dir, "x.png")}, {"stats"}, {"show"}, {"report", "-o", filepath.Join(dir, "x.html")}} {
		code, _, errs := run(ctx, append(args, datasettest.Animals(t))...)
		if code != cli.ExitInterrupted || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit code %d, stderr %q", args, code, errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an interrupted command left %v, %v", left, err)
	}
}

func TestPreviewOnStdout(t *testing.T) {
	code, out, errs := run(context.Background(), "preview", "-o", "-", datasettest.Animals(t))
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, stderr %q", code, errs)
	}
	if _, err := png.Decode(strings.NewReader(out)); err != nil {
		t.Error(err)
	}
}

// A dataset at a URL is fetched first, and the command prints to where.
func TestURL(t *testing.T) {
	path, cache := datasettest.Animals(t), t.TempDir()
	args := []string{"--cache-dir", cache, "file://" + filepath.ToSlash(path)}
	code, out, errs := run(context.Background(), args...)
	if code != 0 && (strings.Contains(errs, "-tags nocloud") || runtime.GOOS != "linux") {
		t.Skipf("no URLs in this build: %s", errs)
	}
	want := "inspect: file://" + filepath.ToSlash(path) + " is fetched to " + cache
	if code != 0 || !strings.HasPrefix(errs, want) || !strings.HasPrefix(out, cache) {
		t.Errorf("exit code %d, stdout %q, stderr %q, want %s", code, out, errs, want)
	}
	code, out, errs = run(context.Background(), append([]string{"verify", "--quiet"}, args...)...)
	if code != 0 || out != "" || errs != "" {
		t.Errorf("quietly: exit code %d, stdout %q, stderr %q", code, out, errs)
	}
}
