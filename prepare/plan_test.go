package prepare

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
)

// A Plan writes nothing before it runs, and runs once.
func TestPlan(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.Dest = filepath.Join(filepath.Dir(c.Dest), "new", "ds")
	root := config(t, c.Source)
	root.Dest = filepath.Dir(c.Dest)
	p, err := NewPlan(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
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
