// Gomlx teaches a small network to distinguish the classes of images, with GoMLX on its backend in
// plain Go, and prints its accuracy on images that it was not shown. Package gomlxds, in the folder
// next to this file, is the one that another program would import.
//
//	preprocess photos/ out/photos --resize 32x32
//	cd examples/gomlx && go run . -data ../../out/photos -checkpoint /tmp/run
//
// It can be killed at any time: the same command resumes from its last checkpoint, and the
// losses are those of a run that was never killed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// config holds the flags.
type config struct {
	data, test string
	steps      int
	batch      int
	rate       float64
	seed       uint64
	flip       bool
	memory     bool   // feed from memory in place of the loader
	checkpoint string // folder; empty for none
	every      int    // steps between checkpoints
	curve      string // file; empty for none
}

func main() {
	c, err := parse(flag.CommandLine, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gomlx:", err)
		flag.Usage()
		os.Exit(2)
	}
	if err := run(c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gomlx:", err)
		os.Exit(1)
	}
}

func parse(flags *flag.FlagSet, args []string) (config, error) {
	var c config
	flags.StringVar(&c.data, "data", "", "dataset to learn from: a flat folder or an HDF5 file (required)")
	flags.StringVar(&c.test, "test", "", "dataset to judge by; without it, a tenth of -data is held out")
	flags.IntVar(&c.steps, "steps", 1000, "training steps, those before a checkpoint included")
	flags.IntVar(&c.batch, "batch", 64, "images a step")
	flags.Float64Var(&c.rate, "rate", 0.001, "learning rate")
	flags.Uint64Var(&c.seed, "seed", 1, "the same seed and data give the same network")
	flags.BoolVar(&c.flip, "flip", true, "mirror images at random")
	flags.BoolVar(&c.memory, "memory", false, "feed from memory, with code that is not penstock's, to compare with")
	flags.StringVar(&c.checkpoint, "checkpoint", "",
		"folder of checkpoints: the run is saved there, and resumes from there")
	flags.IntVar(&c.every, "every", 100, "steps between two checkpoints")
	flags.StringVar(&c.curve, "curve", "", "file that the loss of every step is written to")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	return c, c.validate(flags.Args())
}

// validate reports everything that is wrong.
func (c config) validate(rest []string) error {
	var errs []error
	fail := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	fail(c.data == "", "-data is missing")
	fail(len(rest) > 0, "unexpected arguments: pass flags only")
	fail(c.steps < 1 || c.batch < 1 || c.every < 1, "-steps, -batch and -every must be at least 1")
	fail(c.memory && (c.flip || c.checkpoint != ""), "-memory needs -flip=false, and no -checkpoint")
	return errors.Join(errs...)
}
