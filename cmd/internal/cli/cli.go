// Package cli is the user interface that all commands share: exit codes, Ctrl-C, errors of
// flags, help, progress, and numbers as people read them. It knows nothing about datasets.
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

// Exit codes of every command.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitSkipped     = 3
	ExitInterrupted = 130
)

// ErrInterrupted is the cause of a context that Ctrl-C or SIGTERM cancelled.
var ErrInterrupted = errors.New("interrupted")

// Main runs cmd with the arguments, streams and signals of the process, and ends the process.
// SIGINT and SIGTERM cancel the command's context, so that it can tidy up; a second one, a
// quarter of a second later or more, ends the process at once.
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

// copies is how long signals count as copies of the first: timeout(1) and others send one to a
// process and to its group, which is the same process again.
const copies = 250 * time.Millisecond

// awaitSecond returns when a signal comes that is not a copy of the one that just came.
func awaitSecond(signals <-chan os.Signal) {
	first := time.Now()
	for range signals {
		if time.Since(first) >= copies {
			return
		}
	}
}

// Run runs cmd, whose context is the one set with SetContext, and returns the exit code. An
// error is printed once, on stderr, as "NAME: ...".
//
// A command's PreRunE checks flags and arguments and answers with Usage, so that Run reports
// all errors of a command line at once, unknown flags included.
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

// ofPackage is the beginning of a package's error: its name, and perhaps what it did to which path.
var ofPackage = regexp.MustCompile(`^(?:store|mmapds|loader|combine|remote): (?:(?:open|create) ("[^"]*"): )?`)

// Worded returns the error of a package of Go for users of commands: without the package, with the path first.
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

// Command gives a command whose PreRunE checks its arguments, and whose Use names its flags, to cobra as it stands.
func Command(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine, cmd.Args = true, cobra.ArbitraryArgs
	return cmd
}

// prepare gives a command tree this package's manners.
func prepare(cmd *cobra.Command, args []string) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetHelpFunc(help)
	cmd.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Print the help of a command or topic",
		Args: cobra.ArbitraryArgs, RunE: helpOf})
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, args, err) })
}

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

var lineStart = regexp.MustCompile(`\n(\S)`)

// indented returns a message with all lines after the first indented, so that none looks like a line of this program: a
// name from a file may contain a line break.
func indented(text string) string { return lineStart.ReplaceAllString(text, "\n  $1") }
