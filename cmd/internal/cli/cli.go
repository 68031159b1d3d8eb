// Package cli is the user interface that all commands share: exit codes, Ctrl-C, errors of flags,
// help, progress, tables, and numbers as people read them. It knows nothing about datasets.
//
//	Main      runs a command with the process's arguments, streams and signals
//	Run       the same with given arguments and streams, for tests and for commands in commands
//	Usage     an error of the command line; Run prints all of them at once
//	Progress  a bar on a terminal, lines in a log file, JSON events for programs
//	Print     a result on standard output, as text or, with --json, as JSON
//
// Results go to standard output; progress, notes and errors go to standard error. Every text from a
// file or a server is escaped before it is printed, and secrets in URLs are redacted: a file name
// must not be able to write escape sequences to the terminal, and logs end up in bug reports.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/remote"
)

// Exit codes of every command. Scripts rely on the numbers, so they never change.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitSkipped     = 3
	ExitInterrupted = 130
)

// ErrInterrupted is the cause of a context that SIGINT (Ctrl-C) or SIGTERM cancelled.
var ErrInterrupted = errors.New("interrupted")

// Main runs cmd with the arguments, streams and signals of the process, and ends the process.
// SIGINT and SIGTERM cancel the command's context, so that the command can clean up. A second
// signal ends the process at once, for a user who does not want to wait, unless it arrives within
// copies of the first.
//
// Secrets are taken out of the environment before anything else runs, so that no child process
// inherits them.
func Main(cmd *cobra.Command) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(ErrInterrupted)
		awaitSecond(signals)
		os.Exit(ExitInterrupted)
	}()
	cmd.SetContext(ctx)
	shell.TakeSecrets()
	os.Exit(Run(cmd, shell.Secrets(os.Args[1:]), os.Stdin, os.Stdout, os.Stderr))
}

// copies is the time in which further signals count as copies of the first. timeout(1) and others
// send a signal to a process and then to its process group, which has the same process in it.
const copies = 250 * time.Millisecond

// awaitSecond returns when a signal arrives that is not a copy of the signal that has just arrived.
func awaitSecond(signals <-chan os.Signal) {
	first := time.Now()
	for range signals {
		if time.Since(first) >= copies {
			return
		}
	}
}

// Run runs cmd, with the context set by SetContext, and returns the exit code. An error is printed
// once, on stderr, as "NAME: ...".
//
// A command's PreRunE checks flags and arguments and answers with Usage, so that Run reports all
// errors of a command line at once, unknown flags included. Cobra itself would stop at the first
// error, and its unknown-command error has a layout of its own, which Run rewords.
func Run(cmd *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	prepare(cmd, args)
	cmd.SetArgs(args)
	cmd.SetIn(&input{ctx: ctx, from: stdin})
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	ran, err := cmd.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	if _, _, wrong := cmd.Find(args); wrong != nil {
		text := wrong.Error()
		if unknown, near, ok := strings.Cut(text, "\n\nDid you mean this?\n"); ok {
			text = fmt.Sprintf("%s; did you mean %q?", unknown, strings.Fields(near)[0])
		}
		err = Usage(text)
	}
	code := exitCode(ctx, err)
	text := remote.RedactURLs(Worded(shell.Bounded(err).Error()))
	fmt.Fprintf(stderr, "%s: %s\n", cmd.Name(), indented(shell.Lines(text)))
	if code == ExitUsage {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", ran.CommandPath())
	}
	return code
}

// ofPackage matches the start of an error of a Go package: the package's name, and perhaps the
// operation and the path, such as `store: open "ds": `.
var ofPackage = regexp.MustCompile(`^(?:store|mmapds|loader|combine|remote): (?:(?:open|create) ("[^"]*"): )?`)

// Worded rewords the error of a Go package for users of commands: without the package's name, with
// the path first.
func Worded(text string) string {
	m := ofPackage.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	rest := text[len(m[0]):]
	path, err := strconv.Unquote(m[1])
	if err != nil {
		return rest
	}
	return path + ": " + rest
}

// Command makes cobra accept any arguments for a command whose PreRunE checks them, and print the
// command's Use line as it stands, because the line names the place of the flags itself.
func Command(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine, cmd.Args = true, cobra.ArbitraryArgs
	return cmd
}

// prepare sets up the root of a command tree: help and errors of flags come from this package, and
// cobra prints no error itself.
func prepare(cmd *cobra.Command, args []string) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetHelpFunc(help)
	cmd.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Print the help of a command or topic",
		Args: cobra.ArbitraryArgs, RunE: helpOf})
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, args, err) })
}

// exitCode returns the exit code for an error. Wrong usage and skipped samples come before a
// cancelled context: both stay true if the user pressed Ctrl-C meanwhile.
func exitCode(ctx context.Context, err error) int {
	var usage *UsageError
	var skipped *SkippedError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &skipped):
		return ExitSkipped
	case ctx.Err() != nil:
		return ExitInterrupted
	}
	return ExitFailed
}

// lineStart matches a line break before a line that is not indented.
var lineStart = regexp.MustCompile(`\n(\S)`)

// indented indents all lines of a message but the first. A name from a file may contain a line
// break, and what follows must not look like another line of this program.
func indented(text string) string { return lineStart.ReplaceAllString(text, "\n  $1") }
