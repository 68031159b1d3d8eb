//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
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

// program waits for Ctrl-C, or for its input, and then tidies up, or never does.
func program(cmd *cobra.Command, kind string) error {
	fmt.Fprintln(cmd.OutOrStdout(), "started")
	if kind == "reading" {
		_, err := cmd.InOrStdin().Read(make([]byte, 1))
		return fmt.Errorf("%w; tidied up", err)
	}
	<-cmd.Context().Done()
	if kind == "stubborn" {
		fmt.Fprintln(cmd.OutOrStdout(), "tidying")
		select {}
	}
	return fmt.Errorf("%w; tidied up", ErrInterrupted)
}

func TestSignals(t *testing.T) {
	cases := []struct {
		kind   string
		signal os.Signal
		stderr string
	}{
		{"polite", os.Interrupt, "tool: interrupted; tidied up\n"},
		{"polite", unix.SIGTERM, "tool: interrupted; tidied up\n"},
		{"reading", unix.SIGTERM, "tool: interrupted; tidied up\n"},
		{"stubborn", os.Interrupt, ""},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.kind, c.signal), func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), programKey+"="+c.kind)
			in, err := cmd.StdinPipe() // nothing comes
			require.NoError(t, err)
			defer in.Close()
			var errOut strings.Builder
			cmd.Stderr = &errOut
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			if !lines.Scan() { // it says when it is ready
				t.Fatal("the program ended early")
			}
			require.NoError(t, cmd.Process.Signal(c.signal))
			if lines.Scan() { // it is tidying: one of these comes late enough
				go func() {
					for cmd.Process.Signal(c.signal) == nil {
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
			_ = cmd.Wait() // the exit code is checked
			if code := cmd.ProcessState.ExitCode(); code != 130 || errOut.String() != c.stderr {
				t.Errorf("exit %d, stderr %q; want 130, %q", code, errOut.String(), c.stderr)
			}
		})
	}
}

// Copies of a signal are none of their own, however many come.
func TestCopiesOfASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, signals, ended := time.Now(), make(chan os.Signal), make(chan time.Duration)
		go func() {
			awaitSecond(signals)
			ended <- time.Since(begin)
		}()
		for range 3 {
			signals <- unix.SIGTERM
		}
		time.Sleep(time.Hour)
		signals <- unix.SIGTERM
		if took := <-ended; took != time.Hour {
			t.Errorf("the second signal came after %v", took)
		}
	})
}
