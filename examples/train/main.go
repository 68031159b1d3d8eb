// Train teaches a small convolutional network to distinguish the classes of a dataset, in
// plain Go, and prints how well it does on records that it was not shown. It is an example
// of the last step of the pipe: package mmapds opens what preprocess made, package loader
// feeds it, and everything else is in this folder.
//
//	preprocess photos/ out/photos --resize 32x32
//	go run ./examples/train -data out/photos
//
// Held out is every fifth record (see -holdout), or another dataset (-test), or a split:
//
//	preprocess photos/ out/photos --resize 32x32 --split train=0.8,test=0.2
//	go run ./examples/train -data out/photos -split train -test-split test
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// config holds the flags.
type config struct {
	data, test     string
	split, judge   string // of data, and of test; empty for all records
	images, labels string // names of the fields
	holdout        int    // every n-th record is held out, if there is no test split
	epochs, batch  int
	rate           float64
	seed           uint64
	augment        augmentation
	require        float64 // accuracy below which run fails
}

func main() {
	c := parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, c, os.Stdout)
	stop()
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "train: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

// judgedBy returns the dataset with the records that are not trained on; empty if records of
// data itself are held out.
func (c config) judgedBy() string {
	if c.test == "" && c.judge != "" {
		return c.data
	}
	return c.test
}

func parse() config {
	c := config{augment: mild}
	flag.StringVar(&c.data, "data", "", "dataset to learn from: a flat folder or an HDF5 file (required)")
	flag.StringVar(&c.test, "test", "", "dataset to judge by; without it, records of -data are held out")
	flag.StringVar(&c.split, "split", "", "learn only from this split of -data")
	flag.StringVar(&c.judge, "test-split", "", "judge by this split of -test, or of -data")
	flag.StringVar(&c.images, "images", "images", "field with the images")
	flag.StringVar(&c.labels, "labels", "labels", "field with the classes, as int64")
	flag.IntVar(&c.holdout, "holdout", 5, "hold out every `N`-th record of -data")
	flag.IntVar(&c.epochs, "epochs", 12, "passes over the data")
	flag.IntVar(&c.batch, "batch", 64, "images a step")
	flag.Float64Var(&c.rate, "rate", 0.002, "highest learning rate")
	flag.Uint64Var(&c.seed, "seed", 1, "the same seed and data give the same network")
	flag.Var(&c.augment, "augment", "change images at random: none; mild: mirror, shift; strong: also turn, recolor")
	flag.Float64Var(&c.require, "require", 0, "fail if fewer of the held-out images are right in the end (0 to 1)")
	flag.Parse()
	if err := c.validate(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		flag.Usage()
		os.Exit(2)
	}
	return c
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
	fail(c.judge != "" && c.test == "" && c.split == "",
		"-test-split of -data needs -split, or what judges would be learnt from")
	fail(c.judge != "" && c.test == "" && c.judge == c.split, "-split and -test-split are the same")
	fail(len(rest) > 0, "unexpected arguments: pass flags only")
	fail(c.holdout < 2, "-holdout must be at least 2")
	fail(c.epochs < 1, "-epochs must be at least 1")
	fail(c.batch < 1, "-batch must be at least 1")
	fail(!(c.rate > 0), "-rate must be greater than 0")
	return errors.Join(errs...)
}
