package pythontest

import (
	"slices"
	"strings"
	"testing"
)

// All returns different interpreters; Find returns the first.
func TestAll(t *testing.T) {
	Need(t, "import sys")
	all := slices.Collect(All("import sys"))
	if all[0] != Find("import sys") {
		t.Errorf("%q is the first of %q", Find("import sys"), all)
	}
	t.Setenv("PYTHON", all[0])
	if again := slices.Collect(All("import sys")); len(again) != len(all) {
		t.Errorf("%q, with one of them in $PYTHON %q", all, again)
	}
}

func TestFindNothing(t *testing.T) {
	if p := Find("import no_such_module"); p != "" {
		t.Errorf("%s has a module that does not exist", p)
	}
}

// The hint of a skipped test installs what the test needs: Debian has no package of zarr that is new enough.
func TestInstall(t *testing.T) {
	for statement, want := range map[string]string{
		"import h5py, numpy":                "run apt-get install python3-h5py python3-numpy",
		"from PIL import Image":             "run apt-get install python3-pil",
		"import sys; assert sys.x":          "what is installed is too old; run python3 -m venv ENV && ENV/bin/pip install sys, and set PYTHON=ENV/bin/python",
		"import pyarrow.parquet, PIL, h5py": "run python3 -m venv ENV && ENV/bin/pip install pyarrow pillow h5py, and set PYTHON=ENV/bin/python",
		"from numcodecs import blosc":       "run python3 -m venv ENV && ENV/bin/pip install numcodecs, and set PYTHON=ENV/bin/python",
	} {
		if got := install(statement); got != want {
			t.Errorf("%s: %s, want %s", statement, got, want)
		}
	}
}

func TestRun(t *testing.T) {
	got := Run(t, "import sys", "-c", "import sys; print('warned', file=sys.stderr); print(sys.argv[1:])", "a", "b c")
	if strings.TrimSpace(string(got)) != "['a', 'b c']" {
		t.Errorf("got %q", got)
	}
}
