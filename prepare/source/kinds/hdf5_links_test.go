package kinds

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/prepare/source"
)

// A link into another file may hold records, so that it is an error and not left out; --fields does without. A link to
// nothing is left out and listed, and one to what is in the file is no more than another name of it.
func TestHDF5Links(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "import h5py", "-c", `
import sys, h5py, numpy as np
dir = sys.argv[1]
with h5py.File(f"{dir}/other.h5", "w") as f:
    f["g/z"] = np.arange(3)
def make(name, **links):
    with h5py.File(f"{dir}/{name}.h5", "w") as f:
        f["x"] = np.arange(3)
        for k, v in links.items():
            f[k] = v
make("external", w=h5py.ExternalLink("other.h5", "/g/z"))
make("group", w=h5py.ExternalLink("other.h5", "/g"))
make("lost", w=h5py.ExternalLink("gone.h5", "/g/z"))
make("dangling", w=h5py.SoftLink("/nothing"), y=h5py.SoftLink("/x"))
with h5py.File(f"{dir}/only.h5", "w") as f:
    f["w"] = h5py.ExternalLink("other.h5", "/g/z")
`, dir)
	open := func(name, fields string) (source.Info, error) {
		s, err := Open(t.Context(), filepath.Join(dir, name+".h5"), source.Options{Fields: fields})
		if err != nil {
			return source.Info{}, err
		}
		defer s.Close()
		return s.Info(), nil
	}
	for _, name := range []string{"external", "group", "lost"} {
		if _, err := open(name, ""); err == nil || !strings.Contains(err.Error(), "/w: a link to /g") || !strings.Contains(err.Error(), "--fields x") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := open(name, "w"); err == nil || !strings.Contains(err.Error(), "is not followed") || !strings.Contains(err.Error(), "h5copy") {
			t.Errorf("%s, field w: error %v", name, err)
		}
		if info, err := open(name, "x"); err != nil || len(info.Fields) != 1 {
			t.Errorf("%s, field x: %v", name, err)
		}
	}
	if _, err := open("only", ""); err == nil || !strings.Contains(err.Error(), "in the file other.h5, which is not followed") {
		t.Errorf("only: error %v", err)
	}
	info, err := open("dangling", "")
	if err != nil || len(info.Fields) != 2 || !strings.Contains(strings.Join(info.Hints, " "), `/w (a soft link to /nothing: group "/" has no "nothing")`) || strings.Contains(strings.Join(info.Hints, " "), "/y") {
		t.Errorf("dangling: %v, hints %q", err, info.Hints)
	}
}
