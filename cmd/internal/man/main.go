// Command man writes the manual pages and the completions of penstock, made from its commands:
//
//	go run ./cmd/internal/man FOLDER
//
// gives FOLDER/man/man1/penstock*.1, FOLDER/completions/penstock.{bash,zsh,fish,ps1} and
// FOLDER/cli.md, which make generate copies to docs/.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/penstock"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write makes all files below folder. The same commands give the same bytes on any day, so that a
// change of the generated files is a change of a command.
func write(folder string) error {
	pages, completions := filepath.Join(folder, "man", "man1"), filepath.Join(folder, "completions")
	if err := errors.Join(os.MkdirAll(pages, 0o777), os.MkdirAll(completions, 0o777)); err != nil {
		return err
	}
	root := penstock.Command()
	root.DisableAutoGenTag = true
	epoch := time.Unix(0, 0).UTC() // the same bytes on any day
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "penstock", Manual: "penstock", Date: &epoch},
		pages); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "cli.md"), reference(), 0o666); err != nil {
		return err
	}
	path := func(ext string) string { return filepath.Join(completions, "penstock."+ext) }
	return errors.Join(
		root.GenBashCompletionFileV2(path("bash"), true), root.GenZshCompletionFile(path("zsh")),
		root.GenFishCompletionFile(path("fish"), true), root.GenPowerShellCompletionFileWithDesc(path("ps1")),
	)
}

// reference returns a page with the help of each command.
func reference() []byte {
	var b bytes.Buffer
	b.WriteString("# Commands\n\n" +
		"Generated from the commands by `make generate`. Each section is the output of `--help`, which every command has.\n")
	describe(&b, penstock.Command(), make(map[string]string))
	return b.Bytes()
}

// describe writes the help of a command, as the command prints it, and of the commands below. A command that stands at two
// places of the tree is described once: described has its first path, by name and description.
func describe(b *bytes.Buffer, cmd *cobra.Command, described map[string]string) {
	var help bytes.Buffer
	args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
	if code := cli.Run(penstock.Command(), args, strings.NewReader(""), &help, &help); code != cli.ExitDone {
		panic("man: " + help.String()) // every command has help
	}
	text := strings.TrimRight(help.String(), "\n")
	if cmd.HasParent() {
		text = asking.ReplaceAllString(text, "")
	}
	if key := cmd.Name() + cmd.Long; cmd.Long != "" && described[key] != "" {
		fmt.Fprintf(b, "\n## %s\n\nThe same as `%s`.\n", cmd.CommandPath(), described[key])
	} else {
		described[key] = cmd.CommandPath()
		fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), text)
	}
	for _, sub := range cmd.Commands() {
		describe(b, sub, described)
	}
}

// asking is the flag --help among others, or with its heading where it is alone.
var asking = regexp.MustCompile(`\n\n(Flags|Other):\n  -h, --help +print this help$|\n  -h, --help +print this help`)
