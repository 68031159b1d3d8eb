package inspect

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/store"
)

func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd := Command()
	cmd.SetContext(ctx)
	code = cli.Run(cmd, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	whole, broken := animals(t), animals(t)
	rewrite(t, filepath.Join(broken, "images-00000.npy"), flip(store.HeaderBytes))
	out := filepath.Join(t.TempDir(), "x.png")
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
		{[]string{"nowhere"}, 1},
		{[]string{"preview", "-o", filepath.Join(out, "x.png"), whole}, 1},
		{[]string{}, 2},
		{[]string{"--nonsense", whole}, 2},
		{[]string{"preview", whole}, 2},
		{[]string{"preview", "-o", out, "--count", "many", whole}, 2},
		{[]string{"verify", whole, broken}, 2},
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
	out := filepath.Join(t.TempDir(), "x.png")
	for _, args := range [][]string{{"verify"}, {"preview", "-o", out}} {
		code, _, errs := run(ctx, append(args, animals(t))...)
		if code != cli.ExitInterrupted || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit code %d, stderr %q", args, code, errs)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an interrupted preview left a picture")
	}
}

func TestPreviewOnStdout(t *testing.T) {
	code, out, errs := run(context.Background(), "preview", "-o", "-", animals(t))
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, stderr %q", code, errs)
	}
	if _, err := png.Decode(strings.NewReader(out)); err != nil {
		t.Error(err)
	}
}
