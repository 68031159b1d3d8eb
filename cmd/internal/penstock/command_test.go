package penstock

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

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

// Every command exists, and its examples can be pasted.
func TestHelp(t *testing.T) {
	code, out, _ := run(t, "--help")
	if code != 0 {
		t.Fatalf("code %d", code)
	}
	for _, name := range []string{"preprocess", "inspect", "loadbench", "feed", "demo", "doctor", "completion", "column", "log", "tag", "restore", "prune", "diff"} {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("no %s in:\n%s", name, out)
		}
	}
	without := regexp.MustCompile(`(?m)(?:^|[ (])(?:preprocess|inspect|loadbench|feed) (?:--?[a-z]|\[flags|(?:merge|normalize|show|stats|preview|report|verify|diff|filter|join|layout|view|completion|photos|out)\b).*$`)
	for _, c := range all(Command()) {
		_, out, _ := run(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if m := without.FindString(strings.ReplaceAll(out, "penstock ", "penstock:")); m != "" {
			t.Errorf("the help of %s names a program that may not be installed: %s", c.CommandPath(), m)
		}
		if _, examples, ok := strings.Cut(out, "\nExamples:\n"); ok && !strings.HasPrefix(examples, "  penstock ") {
			t.Errorf("%s: examples are\n%s", c.CommandPath(), examples)
		}
	}
}

// all returns a command and those below it.
func all(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		list = append(list, all(sub)...)
	}
	return list
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

// Topics are listed and printed, at 80 columns where a line is not reflowed; a topic that does not exist is an error.
func TestTopics(t *testing.T) {
	_, root, _ := run(t, "--help")
	for _, topic := range topics() {
		if !strings.Contains(root, "\n  "+topic.Name()+" ") {
			t.Errorf("--help does not list %s", topic.Name())
		}
		code, out, diag := run(t, "help", topic.Name())
		if code != 0 || strings.Contains(out, "Usage:") || len(out) < 300 {
			t.Errorf("%s: code %d: %s%s", topic.Name(), code, out, diag)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "  ") && len(line) > 81 {
				t.Errorf("%s: longer than 80 columns: %s", topic.Name(), line)
			}
		}
	}
	for _, args := range [][]string{{"formatz"}, {"inspect", "nosuch"}} {
		if code, _, diag := run(t, append([]string{"help"}, args...)...); code != cli.ExitUsage || !strings.Contains(diag, "lists commands") {
			t.Errorf("%q: code %d: %s", args, code, diag)
		}
	}
	if code, out, _ := run(t, "help", "inspect", "show"); code != 0 || !strings.Contains(out, "penstock inspect show") {
		t.Errorf("help inspect show: code %d: %s", code, out)
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
