package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write order.json anew")

// TestOrder makes sure that what the Python tests compare with is what package loader does.
func TestOrder(t *testing.T) {
	var want bytes.Buffer
	want.WriteString("[\n")
	for i, g := range goldens() {
		if i > 0 {
			want.WriteString(",\n")
		}
		line, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		want.Write(line)
	}
	want.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile("order.json", want.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("order.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("order.json is not what package loader makes; if that is meant to be: go test -update")
	}
}

// TestPython runs the tests of the Python package. PYTHON names another interpreter.
func TestPython(t *testing.T) {
	python := findPython(t)
	data := t.TempDir()
	if err := write(data); err != nil {
		t.Fatal(err)
	}
	watch(t, "../penstock/*.py", "*.py", "order.json")
	cmd := exec.Command(python, "-W", "error", "-m", "unittest", "discover", "-v", "-t", "..", "-s", ".")
	cmd.Env = append(os.Environ(), "PENSTOCK_TEST_DATA="+data, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", python, out)
	if err != nil {
		t.Error(err)
	}
}

// findPython returns an interpreter that has NumPy, or skips the test.
func findPython(t *testing.T) string {
	t.Helper()
	for _, python := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3"} {
		if python != "" && exec.Command(python, "-c", "import numpy").Run() == nil {
			return python
		}
	}
	t.Skip("no python3 with numpy: apt-get install python3-numpy")
	return ""
}

// watch reads the files of some patterns, so that Go runs the test again when they change.
func watch(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			if _, err := os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}
