package shell

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A child gets the arguments that were hidden, and its own children do not.
func TestHiddenArguments(t *testing.T) {
	if os.Getenv("PENSTOCK_TEST_CHILD") != "" {
		TakeSecrets()
		line, err := os.ReadFile("/proc/self/cmdline")
		if strings.Contains(string(line), "hunter2") || err == nil && len(line) == 0 {
			t.Errorf("the command line is %q", line)
		}
		got := Secrets(os.Args[len(os.Args)-3:])
		if want := []string{"plain", "https://u:hunter2@h/x?a=b", "--to=s3://lab/hunter2"}; !slices.Equal(got, want) {
			t.Errorf("arguments %q, want %q", got, want)
		}
		if out, err := exec.Command("env").Output(); err == nil && strings.Contains(string(out), "hunter2") {
			t.Errorf("a child has %s", out)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHiddenArguments$", "--", "plain", "https://u:hunter2@h/x?a=b", "--to=s3://lab/hunter2")
	cmd.Env = append(os.Environ(), "PENSTOCK_TEST_CHILD=1")
	HideSecrets(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
