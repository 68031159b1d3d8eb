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

// TestPython runs the tests of the Python package. PYTHON names another interpreter. With PENSTOCK_TRANSPORT=portable,
// those of the DataLoader have the transport of macOS and Windows.
func TestPython(t *testing.T) {
	python := pythontest.Need(t, "import numpy")
	var out bytes.Buffer
	cmd := unittest(t, python, "-W", "error", "-m", "unittest", "discover", "-v", "-t", "..", "-s", ".")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	t.Logf("%s\n%s", python, &out)
	if err != nil {
		t.Error(err)
	}
}

// TestPeers runs the tests of the folder peers, for make test-peers. They print as they go: they may run for an hour.
func TestPeers(t *testing.T) {
	chosen := os.Getenv("PENSTOCK_PEERS")
	if chosen == "" {
		t.Skip("make test-peers runs the tests against torch, torchvision, pandas and others")
	}
	pattern := "test_*.py"
	if chosen != "all" {
		pattern = chosen + ".py"
	}
	many := filepath.Join(t.TempDir(), "many")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", many, "./cmd/internal/preprocess/many").CombinedOutput(); err != nil {
		t.Fatalf("building many: %v\n%s", err, out)
	}
	cmd := unittest(t, os.Getenv("PYTHON"), "-m", "unittest", "discover", "-v", "-t", "..", "-s", "peers", "-p", pattern)
	cmd.Env = append(cmd.Env, "PENSTOCK_TEST_MANY="+many)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

// unittest returns a command of Python that has what the tests read: datasets, and the commands feed and preprocess.
func unittest(t *testing.T, python string, args ...string) *exec.Cmd {
	t.Helper()
	data := t.TempDir()
	if err := write(data); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", programs, "./cmd/feed", "./cmd/preprocess").CombinedOutput(); err != nil {
		t.Fatalf("building feed and preprocess: %v\n%s", err, out)
	}
	cmd := exec.Command(python, args...)
	cmd.Env = append(os.Environ(), "PENSTOCK_TEST_DATA="+data, "PENSTOCK_TEST_FEED="+filepath.Join(programs, "feed"), "PENSTOCK_TEST_PREPROCESS="+filepath.Join(programs, "preprocess"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}
