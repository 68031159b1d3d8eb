package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/commands"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

var update = flag.Bool("update", false, "rewrite the .json files")

// TestRedacted checks that the Python tests compare with package remote as it is.
func TestRedacted(t *testing.T) {
	checkGolden(t, "redacted.json", redactions())
}

// redaction is a text, and how it is shown.
type redaction struct {
	Text string `json:"text"`
	Want string `json:"want"`
}

// redactions returns texts with URLs of every form, in which a secret may be anywhere but in the path.
func redactions() (out []redaction) {
	for _, scheme := range []string{"HTTPS", "s3", "ftp"} {
		for _, login := range []string{"", "u@", "u:p/w?@"} {
			for _, rest := range []string{"h", "h:80/a@3/b c", "h/x?region=eu&t=1&&u", "h/x?endpoint=http://h:1?a=b&profile=p", "h/x?a==&region=e%40",
				"h/x?a", "h/x?", "h/x?t=a:b/c;d,e", "h/é?anonymous=é&region=ſ", "h/x?protocol=http&domain=a.b&x=http://u:p@h/y?z=1"} {
				for _, around := range []string{"%s", "open %s: not found", `"%s", and (%[1]s).`, "is %s?"} {
					text := fmt.Sprintf(around, scheme+"://"+login+rest)
					out = append(out, redaction{text, remote.RedactURLs(text)})
				}
			}
		}
	}
	return out
}

// checkGolden compares a file with entries, one a line.
func checkGolden[T any](t *testing.T, name string, entries []T) {
	t.Helper()
	var want bytes.Buffer
	for i, entry := range entries {
		line, err := json.Marshal(entry)
		require.NoError(t, err)
		want.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
		want.Write(line)
	}
	want.WriteString("\n]\n")
	if *update {
		require.NoError(t, os.WriteFile(name, want.Bytes(), 0o666))
	}
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what package loader makes; if that is meant to be: go test -update", name)
	}
}

// TestPython runs the tests of the Python package, some modules at a time. PYTHON names another interpreter. With
// PENSTOCK_TRANSPORT=portable, those of the DataLoader have the transport of macOS and Windows.
func TestPython(t *testing.T) {
	python := pythontest.Need(t, "import numpy")
	modules, err := filepath.Glob("test_*.py")
	if err != nil || len(modules) == 0 {
		t.Fatal("no tests of Python here", err)
	}
	env := environment(t)
	for _, module := range modules {
		name := strings.TrimSuffix(module, ".py")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "-W", "error", "-m", "unittest", "-v", "tests."+name)
			cmd.Dir, cmd.Env, cmd.WaitDelay = "..", env, time.Minute // for a process that is left over and has its output
			out, err := cmd.CombinedOutput()
			t.Logf("%s\n%s", python, out)
			if err != nil {
				t.Error(err)
			}
			for _, skipped := range pythonSkips.FindAllSubmatch(out, -1) {
				t.Run(string(skipped[1]), func(t *testing.T) { t.Skip(string(skipped[2])) })
			}
		})
	}
}

// pythonSkips finds the tests that "unittest -v" skipped, and why: "test_a (tests.test_b.C.test_a) ... skipped 'no torch'",
// where the first line of a docstring may stand on a line of its own before the dots.
var pythonSkips = regexp.MustCompile(`(?m)^ *(\w+) \([^\n]*\)(?:\n[^\n]*)? \.\.\. skipped ['"](.*)['"]$`)

// TestPeers runs the tests of the folder peers, for make test-peers. They print as they go: they may run for an hour.
func TestPeers(t *testing.T) {
	chosen := os.Getenv("PENSTOCK_PEERS")
	if chosen == "" {
		t.Skip("make test-peers runs the tests against torch, torchvision, pandas and others")
	}
	pattern := "test_*.py"
	if chosen != "all" {
		pattern = chosen + ".py"
	}
	many := filepath.Join(t.TempDir(), "many")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", many, "./cmd/internal/preprocess/many").CombinedOutput(); err != nil {
		t.Fatalf("building many: %v\n%s", err, out)
	}
	cmd := exec.Command(os.Getenv("PYTHON"), "-m", "unittest", "discover", "-v", "-t", "..", "-s", "peers", "-p", pattern)
	cmd.Env = append(environment(t), "PENSTOCK_TEST_MANY="+many)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

// environment returns the variables of a Python that runs tests: they name what these read, datasets and the commands feed
// and preprocess.
func environment(t *testing.T) []string {
	t.Helper()
	data := t.TempDir()
	require.NoError(t, write(data))
	programs := commands.Build(t, "../..", "feed", "preprocess", "penstock")
	return append(os.Environ(), "PENSTOCK_TEST_DATA="+data, "PENSTOCK_TEST_FEED="+filepath.Join(programs, "feed"), "PENSTOCK_TEST_PREPROCESS="+filepath.Join(programs, "preprocess"), "PENSTOCK_TEST_PENSTOCK="+filepath.Join(programs, "penstock"), "PYTHONDONTWRITEBYTECODE=", // each module starts many processes, which would compile the package each
		"XDG_CACHE_HOME="+t.TempDir())
}
