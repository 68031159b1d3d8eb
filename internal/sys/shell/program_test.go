package shell

import (
	"runtime/debug"
	"strings"
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

// The command has a name that is not taken, and the options of a URL stay behind it.
func TestRewrite(t *testing.T) {
	for name, want := range map[string]string{
		"s3://lab/ds.zarr": "preprocess s3://lab/ds.zarr s3://lab/ds-flat",
		"s3://lab/a.b/ds":  "preprocess s3://lab/a.b/ds s3://lab/a.b/ds-flat",
		"s3://lab/ds.h5?endpoint=http://host:1": "preprocess 's3://lab/ds.h5?endpoint=http://host:1' " +
			"'s3://lab/ds-flat?endpoint=http://host:1'",
	} {
		if got := Rewrite(name, ""); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
