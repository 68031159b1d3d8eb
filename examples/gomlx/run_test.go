package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/commands"
)

// TestMain lets the tests start this program as a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("GOMLX_EXAMPLE") == "run" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shapes makes a dataset of the images in testdata/raw: circles, squares and others.
func shapes(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.Command(filepath.Join(commands.Build(t, "../..", "preprocess"), "preprocess"),
		"../../testdata/raw", filepath.Join(folder, "ds"), "--resize", "16x16", "--quiet", "--shard-size", "64KiB", "--normalize", "dataset")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(folder, "ds")
}

// TestExample checks the example's purpose: its runs learn, and they are the same in all ways to
// feed them. One dataset serves all.
func TestExample(t *testing.T) {
	data := shapes(t)
	t.Run("learns what it learns from memory", func(t *testing.T) { testMemory(t, data) })
	t.Run("goes on after a kill", func(t *testing.T) { testKill(t, data) })
	t.Run("refuses another run's checkpoint", func(t *testing.T) { testOther(t, data) })
}

func testMemory(t *testing.T, data string) {
	folder := t.TempDir()
	c := config{data: data, steps: 120, batch: 32, rate: 0.003, seed: 7, every: 1000}
	var fed, memory bytes.Buffer
	c.curve = filepath.Join(folder, "fed")
	if err := run(c, &fed); err != nil {
		t.Fatal(err)
	}
	c.curve, c.memory = filepath.Join(folder, "memory"), true
	if err := run(c, &memory); err != nil {
		t.Fatal(err)
	}
	losses := read(t, filepath.Join(folder, "fed"))
	if losses != read(t, c.curve) || strings.Count(losses, "\n") != c.steps {
		t.Errorf("not the same %d losses:\n%s\nfrom memory:\n%s", c.steps, losses, read(t, c.curve))
	}
	right := fed.String()[strings.Index(fed.String(), "right:"):]
	if !strings.HasSuffix(memory.String(), right) {
		t.Errorf("fed: %s\nfrom memory: %s", fed.String(), memory.String())
	}
	if first, last := lossAt(t, losses, 0), lossAt(t, losses, c.steps-1); last > first/4 {
		t.Errorf("the loss went from %v to %v only", first, last)
	}
	t.Log(fed.String())
}

// testKill kills a process at a step that no checkpoint is of, twice, and lets it resume. Its
// work is endless until then, so that it cannot finish before.
func testKill(t *testing.T, data string) {
	folder := t.TempDir()
	do := func(steps int, curve string, more ...string) *exec.Cmd {
		return program(append([]string{"-data", data, "-batch", "32", "-every", "7", "-steps", strconv.Itoa(steps), "-curve", curve}, more...)...)
	}
	curve, saved := filepath.Join(folder, "curve"), filepath.Join(folder, "saved")
	killed(t, curve, 17, do(math.MaxInt32, curve, "-checkpoint", saved))
	killed(t, curve, 39, do(math.MaxInt32, curve, "-checkpoint", saved))
	steps := strings.Count(read(t, curve), "\n") + 21
	out, err := do(steps, curve, "-checkpoint", saved).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "resuming at epoch") {
		t.Fatalf("%v: %s", err, out)
	}
	whole := filepath.Join(folder, "whole")
	if out, err := do(steps, whole).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want, got := read(t, whole), read(t, curve); want != got {
		t.Errorf("the losses of an unbroken run:\n%s\nof one that was killed twice:\n%s", want, got)
	}
}

// killed starts a program and kills it once its curve has that many steps.
func killed(t *testing.T, curve string, steps int, cmd *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for range time.Tick(time.Millisecond) {
		text, _ := os.ReadFile(curve)
		if bytes.Count(text, []byte("\n")) >= steps {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was killed: %v: %s", err, out.String())
		default:
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if out.Len() > 0 && !strings.HasPrefix(out.String(), "resuming") {
		t.Fatalf("it says %s", out.String())
	}
}

func testOther(t *testing.T, data string) {
	c := config{data: data, steps: 8, batch: 32, rate: 0.001, seed: 7, every: 4, checkpoint: filepath.Join(t.TempDir(), "saved")}
	if err := run(c, io.Discard); err != nil {
		t.Fatal(err)
	}
	c.steps, c.batch, c.seed = 16, 16, 8
	err := run(c, io.Discard)
	for _, text := range []string{"batch", "seed"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, which does not name the %s", err, text)
		}
	}
}

// program is this example as a command.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GOMLX_EXAMPLE=run")
	return cmd
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lossAt returns that of a step.
func lossAt(t *testing.T, losses string, step int) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.Split(losses, "\n")[step], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
