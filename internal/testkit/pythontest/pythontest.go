// Package pythontest finds the Pythons whose libraries tests compare with.
package pythontest

import (
	"bytes"
	"cmp"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// All returns the interpreters that run a statement, such as "import numpy", without an error:
// $PYTHON, where it is set, then the usual ones, each installation once.
func All(statement string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make(map[string]bool)
		for _, p := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3", "python"} {
			out, err := exec.Command(p, "-c", quick(statement)+"\nimport sys; print(sys.prefix, sys.version)").Output()
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

// quick returns a statement that fails where a statement of imports does because a module is not there. It imports
// only packages of modules, as TensorFlow and PyTorch take ten seconds.
func quick(statement string) string {
	list, ok := strings.CutPrefix(statement, "import ")
	if !ok || strings.ContainsAny(list, ";\n") {
		return statement
	}
	var modules []string
	for name := range strings.SplitSeq(list, ",") {
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		modules = append(modules, name)
	}
	return "import importlib.util\nfor m in '" + strings.Join(modules, " ") + "'.split(): assert importlib.util.find_spec(m), m"
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
		t.Skipf("no Python found, nor in $PYTHON, that can %q: %s", statement, install(statement))
	}
	return p
}

// debian are the packages of Debian that have modules. Modules that PyPI has under other names are in pypi.
var (
	debian = map[string]string{"numpy": "python3-numpy", "h5py": "python3-h5py", "PIL": "python3-pil"}
	pypi   = map[string]string{"PIL": "pillow"}
)

// install returns what to run for a Python that can execute a statement: apt-get if Debian has all of its modules, pip
// otherwise, and where a module is there that the statement does not take.
func install(statement string) string {
	statement, _, versioned := strings.Cut(statement, ";")
	old := versioned && Find(statement) != ""
	list, ok := strings.CutPrefix(statement, "import ")
	if !ok {
		list = strings.Fields(statement)[1] // of "from M import N"
	}
	var packages, projects []string
	for name := range strings.SplitSeq(list, ",") {
		name, _, _ = strings.Cut(strings.TrimSpace(name), ".")
		projects = append(projects, cmp.Or(pypi[name], name))
		if p, ok := debian[name]; ok {
			packages = append(packages, p)
		}
	}
	if len(packages) == len(projects) && !old {
		return "run apt-get install " + strings.Join(packages, " ")
	}
	found := ""
	if old {
		found = "what is installed is too old; "
	}
	return found + "run python3 -m venv ENV && ENV/bin/pip install " + strings.Join(projects, " ") +
		", and set PYTHON=ENV/bin/python"
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
