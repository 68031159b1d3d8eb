package penstock

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := Command()
	cmd.SetContext(t.Context())
	var out, diag bytes.Buffer
	code = cli.Run(cmd, args, strings.NewReader(""), &out, &diag)
	return code, out.String(), diag.String()
}

// Every command is there, and its examples can be pasted.
func TestHelp(t *testing.T) {
	code, out, _ := run(t, "--help")
	if code != 0 {
		t.Fatalf("code %d", code)
	}
	for _, name := range []string{"preprocess", "inspect", "loadbench", "feed", "demo", "doctor", "completion"} {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("no %s in:\n%s", name, out)
		}
	}
	for _, args := range [][]string{{"preprocess"}, {"preprocess", "merge"}, {"inspect"}, {"inspect", "verify"}, {"loadbench"}, {"feed"}} {
		_, out, _ := run(t, append(args, "--help")...)
		_, examples, _ := strings.Cut(out, "\nExamples:\n")
		if !strings.HasPrefix(examples, "  penstock "+args[0]+" ") || strings.Contains(examples, "\n  "+args[0]+" ") {
			t.Errorf("%v: examples are\n%s", args, examples)
		}
	}
}

func TestVersionAndMistakes(t *testing.T) {
	if code, out, _ := run(t, "--version"); code != 0 || !strings.HasPrefix(out, "penstock ") {
		t.Errorf("code %d: %s", code, out)
	}
	if code, _, diag := run(t, "inspekt", "x"); code != cli.ExitUsage || !strings.Contains(diag, "inspect") {
		t.Errorf("code %d: %s", code, diag)
	}
	if code, _, diag := run(t, "inspect"); code != cli.ExitUsage || !strings.Contains(diag, "penstock inspect --help") {
		t.Errorf("code %d: %s", code, diag)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, diag := run(t, "completion", shell); code != 0 || !strings.Contains(out, "penstock") {
			t.Errorf("%s: code %d: %s", shell, code, diag)
		}
	}
}

// The demo makes what it says it makes, and its network learns.
func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	code, out, diag := run(t, "demo", "--no-open", dir)
	_, last, _ := strings.Cut(out, "\nepoch 30: ")
	var right, of int
	if n, err := fmt.Sscanf(last, "%d of %d held out", &right, &of); code != 0 || n != 2 || right*10 < of*9 {
		t.Fatalf("code %d, error %v: %s\n%s", code, err, out, diag)
	}
	for _, name := range []string{"raw/circle/0000.png", "shapes.h5", "report.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if code, _, diag := run(t, "demo", "--no-open", dir); code != 0 {
		t.Errorf("a second time: code %d: %s", code, diag)
	}
}

func TestDoctor(t *testing.T) {
	code, out, diag := run(t, "doctor")
	if code != 0 || !strings.Contains(out, "HDF5") || !strings.Contains(out, "memory") {
		t.Errorf("code %d: %s\n%s", code, out, diag)
	}
	if code, out, _ = run(t, "doctor", "--json"); code != 0 || !strings.HasPrefix(out, "{") {
		t.Errorf("code %d: %s", code, out)
	}
}
