package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/bench/internal/measure"
)

// repeat is how often preprocess gets each photo, so that its start weighs little.
const repeat = 16

// preprocess compares the command, from files to a dataset on disk, with what the pipeline alone
// takes for as many photos in memory, with a plain loop that keeps what the pipeline makes, and with
// what the system takes to read the files and to write the records.
func (b *bench) preprocess() error {
	rows := [][]string{{"preprocess --workers 1, flat dataset", "set", "us/photo", "of the pipeline's CPU time",
		"a loop that keeps its records, of the same", "reading and writing alone, of the same", "files"}}
	for _, s := range b.sets {
		src := filepath.Join(b.dir, s.name+"-repeated")
		if err := repeated(filepath.Join(b.dir, s.name), src, len(s.files), repeat); err != nil {
			return err
		}
		for i, d := range b.decoders() {
			if i >= len(b.o.preprocess) {
				break
			}
			for _, dt := range []string{"uint8", "float32"} {
				results, err := measure.Rounds(b.o.rounds, len(s.files), len(s.files), []measure.Contender{
					{Name: "pipeline, " + d.name + ", " + dt, Do: d.do("bilinear "+dt, s.name)},
					{Name: "loop that keeps its records, " + d.name + ", " + dt, Do: d.do(keeping+"bilinear "+dt, s.name)},
					{Name: "reading and writing alone, " + dt, Do: d.do(system+"bilinear "+dt, s.name)},
					{Name: "preprocess, " + d.name + ", " + dt, Do: b.command(b.o.preprocess[i], src, dt, repeat)},
				})
				if err != nil {
					return err
				}
				measure.Lines(os.Stdout, "Preprocess/"+s.name, "photo", results)
				pipeline, loop, system, whole := results[0], results[1], results[2], results[3]
				rows = append(rows, []string{d.name + ", " + dt, s.name, micros(whole), whole.Over(pipeline, measure.CPU).String(),
					loop.Over(pipeline, measure.CPU).String(), system.Over(pipeline, measure.CPU).String(),
					fmt.Sprint(repeat * len(s.files))})
			}
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// repeated makes a folder with each photo of a set several times, as links.
func repeated(from, to string, n, times int) error {
	for k := range times {
		dir := filepath.Join(to, fmt.Sprintf("class%d", k))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for i := range n {
			photo := photoPath(from, i)
			if err := os.Link(photo, filepath.Join(dir, filepath.Base(photo))); err != nil {
				return err
			}
		}
	}
	return nil
}

// command runs preprocess on all photos, whatever part is asked for, and returns the time for
// one pass over them.
func (b *bench) command(program, src, dtype string, times int) func(from, to int) (measure.Cost, error) {
	return func(int, int) (measure.Cost, error) {
		dest := filepath.Join(b.dir, "dataset")
		defer os.RemoveAll(dest)
		args := []string{src, dest, "--resize", "256", "--crop", "224", "--workers", "1", "--quiet", "--dtype", dtype}
		if dtype != "uint8" {
			args = append(args, "--normalize", "imagenet")
		}
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return measure.Cost{}, fmt.Errorf("%s: %w: %s", program, err, out)
		}
		wall, p := time.Since(began), cmd.ProcessState
		return measure.Cost{Wall: wall.Seconds() / float64(times), CPU: (p.UserTime() + p.SystemTime()).Seconds() / float64(
			times)}, nil
	}
}
