package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-data x", ""},
		{"", "-data is missing"},
		{"-data x y", "unexpected arguments"},
		{"-data x -steps 0", "at least 1"},
		{"-data x -memory", "-flip=false"},
		{"-data x -memory -flip=false -checkpoint y", "no -checkpoint"},
		{"-data x -memory -flip=false", ""},
	} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		_, err := parse(flags, strings.Fields(c.args))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestCurveGoesOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "curve")
	for _, step := range []struct {
		from int
		add  float32
		want string
	}{{0, 3, "3\n"}, {1, 2, "3\n2\n"}, {1, 1.5, "3\n1.5\n"}} {
		c, err := openCurve(name, step.from)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.add(step.add); err != nil {
			t.Fatal(err)
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(name); string(got) != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	if _, err := openCurve(name, 3); err == nil {
		t.Error("a curve of 2 steps went on after 3")
	}
}

func TestTornCheckpointsAreDropped(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a.json": "{}", "a.bin": "x", "b.json": "{", "b.bin": "x", "c.json": ""} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropTorn(folder); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}
