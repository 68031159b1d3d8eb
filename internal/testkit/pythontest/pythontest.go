// Package pythontest finds the Pythons whose libraries tests compare with.
package pythontest

import (
	"bytes"
	"iter"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// All returns the interpreters that run a statement, such as "import numpy", without an error:
// $PYTHON, where it is set, then the usual ones, each installation once.
func All(statement string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make(map[string]bool)
		for _, p := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3", "python"} {
			out, err := exec.Command(p, "-c", statement+"\nimport sys; print(sys.prefix, sys.version)").Output()
			if err != nil || seen[string(out)] {
				continue
			}
			seen[string(out)] = true
			if !yield(p) {
				return
			}
		}
	}
}

// found has the first of All, by statement.
var found sync.Map

// Find returns the first of All, "" if there is none. A statement is tried once a process.
func Find(statement string) string {
	find, _ := found.LoadOrStore(statement, sync.OnceValue(func() string {
		for p := range All(statement) {
			return p
		}
		return ""
	}))
	return find.(func() string)()
}

// Need is Find for a test that cannot do without: it is skipped if there is none.
func Need(t testing.TB, statement string) string {
	t.Helper()
	p := Find(statement)
	if p == "" {
		t.Skipf("no Python found, nor in $PYTHON, that can %q: nothing to compare with (Debian: apt-get install "+
			"python3-numpy python3-h5py python3-pil)", statement)
	}
	return p
}

// Run gives the interpreter of Need arguments, "-c" and a script first or the name of one, and
// returns what it prints. An error there fails the test, and only then Run prints stderr, where
// libraries print warnings, too.
func Run(t testing.TB, statement string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(Need(t, statement), args...)
	var diag bytes.Buffer
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", cmd.Path, err, out, diag.Bytes())
	}
	return out
}
