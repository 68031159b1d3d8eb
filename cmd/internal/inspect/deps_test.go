package inspect

import (
	"os/exec"
	"strings"
	"testing"
)

// The command reads HDF5 without libhdf5, so that it runs where there is none and no file
// can crash it.
func TestNoLibHDF5(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skip("no go command to list imports with: ", err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.HasPrefix(dep, "gonum.org/v1/hdf5") || strings.HasSuffix(dep, "/store/hdf5") {
			t.Errorf("imports %s", dep)
		}
	}
}
