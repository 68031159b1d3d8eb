package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/penstock"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Two runs give the same files, and every command has a page.
func TestWrite(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		require.NoError(t, write(dir))
	}
	for _, name := range []string{
		"man/man1/penstock.1", "man/man1/penstock-preprocess-merge.1", "man/man1/penstock-inspect-report.1", "man/man1/penstock-demo.1",
		"completions/penstock.bash", "completions/penstock.zsh", "completions/penstock.fish", "completions/penstock.ps1",
	} {
		a, err := os.ReadFile(filepath.Join(first, name))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || string(a) != string(b) || !strings.Contains(string(a), "penstock") {
			t.Errorf("%s: %d and %d bytes, error %v", name, len(a), len(b), err)
		}
	}
}

var section = regexp.MustCompile("(?m)^## (penstock[a-z ]*)$")

// docs/cli.md is what reference makes, and every command has a section.
func TestReferenceIsCurrent(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cli.md")
	require.NoError(t, err)
	if string(page) != string(reference()) {
		t.Error("docs/cli.md is not what the commands print by --help; run make generate")
	}
	var commands []string
	for _, m := range section.FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, m[1])
	}
	if want := paths(penstock.Command()); !slices.Equal(commands, want) {
		t.Errorf("docs/cli.md has the commands %q, and there are %q; run make generate", commands, want)
	}
}

// paths returns the names of a command and of those below it, in the order of the page.
func paths(cmd *cobra.Command) []string {
	list := []string{cmd.CommandPath()}
	for _, sub := range cmd.Commands() {
		list = append(list, paths(sub)...)
	}
	return list
}
