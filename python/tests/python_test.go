package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
)

var update = flag.Bool("update", false, "write the .json files anew")

// TestOrder makes sure that what the Python tests compare with is what package loader does.
func TestOrder(t *testing.T) {
	checkGolden(t, "order.json", goldens())
	checkGolden(t, "regions.json", allRegions())
	checkGolden(t, "splits.json", allSplits())
	batches, err := allBatches()
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "batches.json", batches)
	samplers, err := allSamplers()
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "samplers.json", samplers)
}

// checkGolden compares a file with entries, one a line.
func checkGolden[T any](t *testing.T, name string, entries []T) {
	t.Helper()
	var want bytes.Buffer
	for i, entry := range entries {
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
		want.Write(line)
	}
	want.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile(name, want.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what package loader makes; if that is meant to be: go test -update", name)
	}
}

// TestPython runs the tests of the Python package. PYTHON names another interpreter.
func TestPython(t *testing.T) {
	python := pythontest.Need(t, "import numpy")
	data := t.TempDir()
	if err := write(data); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", programs, "./cmd/feed", "./cmd/preprocess").CombinedOutput(); err != nil {
		t.Fatalf("building feed and preprocess: %v\n%s", err, out)
	}
	watch(t, "../penstock/*.py", "../examples/*.py", "*.py", "*.json", "../../cmd/internal/feed/*.go", "../../cmd/internal/preprocess/*.go", "../../cmd/internal/source/producer/*.go", "../../loader/*.go", "../../loader/cuda/testdata/fakecuda/*.c")
	cmd := exec.Command(python, "-W", "error", "-m", "unittest", "discover", "-v", "-t", "..", "-s", ".")
	cmd.Env = append(os.Environ(), "PENSTOCK_TEST_DATA="+data, "PENSTOCK_TEST_FEED="+filepath.Join(programs, "feed"), "PENSTOCK_TEST_PREPROCESS="+filepath.Join(programs, "preprocess"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", python, out)
	if err != nil {
		t.Error(err)
	}
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
