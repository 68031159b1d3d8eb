package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/penstock"
)

// Two runs give the same files, and every command has a page.
func TestWrite(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if err := write(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"man/man1/penstock.1", "man/man1/penstock-preprocess-merge.1", "man/man1/penstock-inspect-report.1", "man/man1/penstock-demo.1",
		"completions/penstock.bash", "completions/penstock.zsh", "completions/penstock.fish", "completions/penstock.ps1",
	} {
		a, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || string(a) != string(b) || !strings.Contains(string(a), "penstock") {
			t.Errorf("%s: %d and %d bytes, error %v", name, len(a), len(b), err)
		}
	}
}

// docs/cli.md is what the commands say now.
func TestReferenceIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(reference(penstock.Command())) {
		t.Error("docs/cli.md is not current; run make generate")
	}
}
