package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// command is a small command whose work is f.
func command(f func(*cobra.Command) error) *cobra.Command {
	var size int
	var name string
	var fast bool
	cmd := &cobra.Command{
		Use: "tool [flags] FILE", Short: "Do a thing", Example: "  tool x --size 3",
		Args: cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error {
			u := &UsageError{}
			if len(args) != 1 {
				u.Arguments = fmt.Sprintf("needs a FILE, not %d", len(args))
			}
			if size < 1 {
				u.Problems = append(u.Problems, fmt.Sprintf("--size %d: too small", size))
			}
			if u.Arguments == "" && u.Problems == nil {
				return nil
			}
			return u
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f(cmd) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&size, "size", 5, "how `MUCH`")
	cmd.Flags().StringVar(&name, "name", "", "what `NAME`")
	cmd.Flags().BoolVarP(&fast, "fast", "f", false, "run fast")
	Group(cmd, "Shape", "size", "name")
	return cmd
}

func runTool(cmd *cobra.Command, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = Run(cmd, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestExitCodes(t *testing.T) {
	cases := []struct {
		name string
		err  error
		code int
		text string
	}{
		{"done", nil, 0, ""},
		{"failed", errors.New("no luck"), 1, "tool: no luck\n"},
		{"usage", fmt.Errorf("wrapped: %w", Usage("a", "b")), 2, "tool: wrapped: wrong usage:\n  a\n  b\nRun 'tool --help' for usage.\n"},
		{"skipped", &SkippedError{"skipped 1 of 2"}, 3, "tool: skipped 1 of 2\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, out, errOut := runTool(command(func(*cobra.Command) error { return c.err }), "x")
			if code != c.code || errOut != c.text || out != "" {
				t.Errorf("exit %d, stderr %q, stdout %q; want %d, %q", code, errOut, out, c.code, c.text)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cmd := command(func(cmd *cobra.Command) error {
		cancel(ErrInterrupted)
		<-cmd.Context().Done()
		return fmt.Errorf("%w in the middle", context.Cause(cmd.Context()))
	})
	cmd.SetContext(ctx)
	code, _, errOut := runTool(cmd, "x")
	if code != 130 || errOut != "tool: interrupted in the middle\n" {
		t.Errorf("exit %d, stderr %q", code, errOut)
	}
}

// A finished command succeeds, also when Ctrl-C comes a moment later.
func TestInterruptedTooLate(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cmd := command(func(*cobra.Command) error { cancel(ErrInterrupted); return nil })
	cmd.SetContext(ctx)
	if code, _, errOut := runTool(cmd, "x"); code != 0 || errOut != "" {
		t.Errorf("exit %d, stderr %q", code, errOut)
	}
}

func TestFlagProblems(t *testing.T) {
	cases := []struct {
		args string
		want []string // all problems, in order
	}{
		{"x --sise 3", []string{"unknown flag --sise; did you mean --size?"}},
		{"x --zzzzz", []string{"unknown flag --zzzzz"}},
		{"x -z", []string{"unknown flag -z"}},
		{"x --size 99999999999999999999", []string{`--size "99999999999999999999": out of range`}},
		{"x --size abc", []string{`--size "abc": not a whole number`}},
		{"x --fast=perhaps", []string{`--fast "perhaps": not true or false`}},
		{"x --name", []string{"--name needs a value"}},
		{"--size abc", []string{"needs a FILE, not 0", `--size "abc": not a whole number`}},
		{"--size 0", []string{"needs a FILE, not 0", "--size 0: too small"}},
		{"--aaaaaaa --size 0 --bbbbbbb=3 -q --name n", []string{"unknown flag --aaaaaaa", "unknown flag --bbbbbbb", "unknown flag -q", "--size 0: too small"}},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			code, _, errOut := runTool(command(func(*cobra.Command) error { return nil }), strings.Fields(c.args)...)
			text := c.want[0]
			if len(c.want) > 1 {
				text = "wrong usage:\n  " + strings.Join(c.want, "\n  ")
			}
			if want := "tool: " + text + "\nRun 'tool --help' for usage.\n"; code != 2 || errOut != want {
				t.Errorf("exit %d, stderr\n%swant\n%s", code, errOut, want)
			}
		})
	}
}

func TestUnknownCommand(t *testing.T) {
	root := &cobra.Command{Use: "tool"}
	root.AddCommand(&cobra.Command{Use: "show", Run: func(*cobra.Command, []string) {}})
	code, _, errOut := runTool(root, "shwo")
	if code != 2 || !strings.Contains(errOut, `unknown command "shwo" for "tool"; did you mean "show"?`) || !strings.Contains(errOut, "Run 'tool --help'") {
		t.Errorf("exit %d, stderr %q", code, errOut)
	}
}

func TestHelp(t *testing.T) {
	cmd := command(func(*cobra.Command) error { t.Error("ran"); return nil })
	sub := &cobra.Command{Use: "show", Short: "Show it", Run: func(*cobra.Command, []string) {}}
	cmd.AddCommand(sub)
	code, out, errOut := runTool(cmd, "--help")
	if code != 0 || errOut != "" {
		t.Fatalf("exit %d, stderr %q", code, errOut)
	}
	at := 0
	for _, part := range []string{
		"Do a thing\n", "\nUsage:\n  tool [flags] FILE", "\nExamples:\n  tool x --size 3\n",
		"\nCommands:\n", "show", "Show it", "\nShape:\n", "--size MUCH", "(default 5)", "--name NAME", "\nOther:\n", "-f, --fast",
	} {
		i := strings.Index(out[at:], part)
		if i < 0 {
			t.Fatalf("no %q after byte %d of\n%s", part, at, out)
		}
		at += i
	}
}

func TestErrorsOfPackages(t *testing.T) {
	for text, want := range map[string]string{
		`store: open "a b": it has no field "x"`:                      `a b: it has no field "x"`,
		`mmapds: record 3: field "x": cannot be read`:                 `record 3: field "x": cannot be read`,
		`source photos: no such file or folder`:                       `source photos: no such file or folder`,
		`store: create "ds": store: open "other": it is not a folder`: `ds: store: open "other": it is not a folder`,
	} {
		if got := Worded(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
