//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// In a process with this variable set, the tests are the program under test.
const programKey = "PENSTOCK_CLI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if kind := os.Getenv(programKey); kind != "" {
		os.Args = []string{"tool"}
		Main(&cobra.Command{Use: "tool", RunE: func(cmd *cobra.Command, _ []string) error { return program(cmd, kind) }})
	}
	os.Exit(m.Run())
}

// program waits for Ctrl-C and then tidies up, or never does.
func program(cmd *cobra.Command, kind string) error {
	fmt.Fprintln(cmd.OutOrStdout(), "started")
	<-cmd.Context().Done()
	if kind == "stubborn" {
		fmt.Fprintln(cmd.OutOrStdout(), "tidying")
		select {}
	}
	return fmt.Errorf("%w; tidied up", ErrInterrupted)
}

func TestSignals(t *testing.T) {
	cases := []struct {
		kind    string
		signals []os.Signal
		stderr  string
	}{
		{"polite", []os.Signal{os.Interrupt}, "tool: interrupted; tidied up\n"},
		{"polite", []os.Signal{unix.SIGTERM}, "tool: interrupted; tidied up\n"},
		{"stubborn", []os.Signal{os.Interrupt, os.Interrupt}, ""},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.kind, len(c.signals), c.signals[0]), func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), programKey+"="+c.kind)
			var errOut strings.Builder
			cmd.Stderr = &errOut
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for _, s := range c.signals {
				if !lines.Scan() { // it says when it is ready for the next
					t.Fatal("the program ended early")
				}
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // the exit code tells
			if code := cmd.ProcessState.ExitCode(); code != 130 || errOut.String() != c.stderr {
				t.Errorf("exit %d, stderr %q; want 130, %q", code, errOut.String(), c.stderr)
			}
		})
	}
}
