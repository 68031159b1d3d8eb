package prepare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// A Plan writes nothing before it runs, and runs once.
func TestPlan(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.Dest = filepath.Join(filepath.Dir(c.Dest), "new", "ds")
	root := config(t, c.Source)
	root.Dest = filepath.Dir(c.Dest)
	p, err := NewPlan(t.Context(), c, nil)
	require.NoError(t, err)
	p.Close()
	rawtest.CheckNothing(t, root.Dest)
	if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed Plan: %v", err)
	}
	if p, err = NewPlan(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if s, err := p.Run(t.Context()); err != nil || s.Records != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has run") {
		t.Errorf("a Plan that has run: %v", err)
	}
	if _, err := NewPlan(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a dataset that exists: %v", err)
	}
	c.Source = filepath.Join(t.TempDir(), "none")
	c.Dest += "2"
	if _, err := NewPlan(t.Context(), c, nil); err == nil {
		t.Error("a source that does not exist")
	}
	rawtest.CheckNothing(t, filepath.Join(t.TempDir(), "x"))
}

// Folders that a mistyped path has made are named; the one folder that many outputs are in is not.
func TestPlanNamesMadeFolders(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	base := filepath.Dir(c.Dest)
	for dest, want := range map[string]bool{filepath.Join(base, "one", "ds"): false, filepath.Join(base, "two", "more", "ds"): true} {
		c.Dest = dest
		s := mustRun(t, c)
		if got := strings.Contains(strings.Join(s.Hints, "\n"), "as "+filepath.Join(base, "two")+" did not exist"); got != want {
			t.Errorf("%s: %q", dest, s.Hints)
		}
	}
}

// Names that are one letter away from those of a format are refused, if no dataset has them.
func TestMistypedExtension(t *testing.T) {
	for dest, meant := range map[string]string{
		"out.h6": ".h5", "s3://b/out.hfd5": ".hdf5", "out.zar": ".zarr", "out.h5": "", "out.zarr": "", "ds.v5": "", "out.h": "", "model-1.0": "", "ds": "",
	} {
		if got := DestProblem(dest, ""); (meant == "") != (got == "") || !strings.Contains(got, "did you mean "+meant) && meant != "" {
			t.Errorf("%s: %q", dest, got)
		}
	}
	if there := filepath.Join(t.TempDir(), "old.h6"); DestProblem(there, Flat) != "" || os.Mkdir(there, 0o777) != nil || DestProblem(there, "") != "" {
		t.Error("a folder of that name that exists, or is asked for, is refused")
	}
}
