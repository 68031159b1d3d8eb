package shell

import (
	"runtime/debug"
	"testing"
)

// A command line begins with the program under which the reader started it, and with penstock in every other program.
func TestPenstock(t *testing.T) {
	ours := &debug.BuildInfo{Main: debug.Module{Path: "github.com/penstock/penstock"}}
	other := &debug.BuildInfo{Main: debug.Module{Path: "example.com/train"}}
	for _, c := range []struct {
		program string
		info    *debug.BuildInfo
		want    string
	}{
		{"/usr/bin/penstock", ours, "penstock "}, {"bin/inspect", ours, ""}, {"feed", ours, ""}, {"preprocess.exe", ours, ""}, {"./loadbench", ours, ""},
		{"train", other, "penstock "}, {"feed", other, "penstock "}, {"shell.test", ours, "penstock "}, {"feed", nil, "penstock "},
	} {
		if got := before(c.program, c.info); got != c.want {
			t.Errorf("%s of %+v: %q, want %q", c.program, c.info, got, c.want)
		}
	}
	if got := Penstock("preprocess merge", "a b"); got != "penstock preprocess merge 'a b'" {
		t.Error(got)
	}
	if got := Penstock("inspect", "a\n"); got != "" {
		t.Error(got)
	}
}
