package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/penstock/penstock/examples/train/internal/cnn"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// run trains and reports to out. The last line reports the result.
func run(ctx context.Context, c config, out io.Writer) (err error) {
	d, err := openImages(c.data, c.split, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	judge := d
	if test := c.judgedBy(); test != "" {
		if judge, err = openImages(test, c.judge, c); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, judge.Close()) }()
		if err := d.like(judge); err != nil {
			return err
		}
	}
	s, err := newSession(c, d, judge)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.run(ctx, out)
}

// session is one training.
type session struct {
	c       config
	d       *images
	net     *cnn.Network
	learn   *loader.Loader // the records to learn from
	held    *loader.Loader // the records to judge by
	learnIn *input
	heldIn  *input
	steps   int // taken
}

func newSession(c config, d, judge *images) (*session, error) {
	s := &session{c: c, d: d}
	var learn, held sampler.Sampler = sampler.Shuffle{}, sampler.Sequential{}
	if c.judgedBy() == "" {
		learn, held = fold{c.holdout, false, learn}, fold{c.holdout, true, held}
		if d.Len() < c.holdout {
			return nil, fmt.Errorf("%d records are too few to hold out every %d-th", d.Len(), c.holdout)
		}
	}
	names := []string{c.images, c.labels}
	var err, err2 error
	s.learn, err = loader.New(d, loader.Options{BatchSize: c.batch, Sampler: learn, Seed: c.seed, Fields: names})
	s.held, err2 = loader.New(judge, loader.Options{BatchSize: c.batch, Sampler: held, Fields: names})
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	scale, bias := d.scaling()
	s.learnIn, s.heldIn = newInput(d, scale, bias, c.batch), newInput(judge, scale, bias, c.batch)
	s.learnIn.augment, s.learnIn.seed = c.augment, c.seed
	s.net = cnn.New(cnn.Config{Channels: d.channels, Height: d.height, Width: d.width, Classes: len(d.classes),
		Seed: c.seed})
	return s, nil
}

func (s *session) close() error { return errors.Join(s.learn.Close(), s.held.Close()) }

// run trains. It judges, and prints a line, after at most about twenty of the epochs.
func (s *session) run(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "%d images of %dx%d in %d classes; a network with %d parameters\n",
		s.d.Len(), s.d.width, s.d.height, len(s.d.classes), s.net.Params())
	began := time.Now()
	var judged cnn.Result
	every := (s.c.epochs + 19) / 20
	for first := 0; first < s.c.epochs; first += every {
		start, waited := time.Now(), s.waited()
		last := min(first+every, s.c.epochs)
		learned, err := s.trainAll(ctx, first, last)
		if err != nil {
			return err
		}
		if judged, err = s.judge(ctx); err != nil {
			return err
		}
		took := time.Since(start)
		fmt.Fprintf(out, "epoch %3d: loss %.3f, %5.1f %% right in training, %5.1f %% held out; %.1f s, %.1f %% of it "+
			"waiting for the loader\n",
			last, learned.MeanLoss(), 100*learned.Accuracy(), 100*judged.Accuracy(),
			took.Seconds(), 100*float64(s.waited()-waited)/float64(took))
	}
	return s.conclude(out, judged, time.Since(began))
}

// conclude prints the last line and holds the result against what was asked for.
func (s *session) conclude(out io.Writer, judged cnn.Result, took time.Duration) error {
	fmt.Fprintf(out, "held out: %d of %d images right, %.1f %% (chance: %.1f %%), after %d epochs in %.0f s\n",
		judged.Right, judged.Images, 100*judged.Accuracy(), 100/float64(len(s.d.classes)), s.c.epochs, took.Seconds())
	if judged.Accuracy() < s.c.require {
		return fmt.Errorf("%.1f %% is less than the %.1f %% that -require asks for", 100*judged.Accuracy(), 100*s.c.require)
	}
	return nil
}

// waited returns how long the training has waited for batches.
func (s *session) waited() time.Duration { return s.learn.Stats().Wait + s.held.Stats().Wait }

// trainAll trains epochs [first, last) and returns the result of the last epoch.
func (s *session) trainAll(ctx context.Context, first, last int) (learned cnn.Result, err error) {
	for epoch := first; epoch < last && err == nil; epoch++ {
		learned, err = s.train(ctx, epoch)
	}
	return learned, err
}

// train takes a step for each batch of an epoch.
func (s *session) train(ctx context.Context, epoch int) (sum cnn.Result, err error) {
	for b, err := range s.learn.Epoch(ctx, epoch) {
		if err != nil {
			return sum, err
		}
		x, y := s.learnIn.images(b, epoch), tensor.As[int64](b.Field(s.c.labels))
		sum.Add(s.net.Train(x, y, s.rate()))
		s.steps++
	}
	return sum, nil
}

// judge asks the network about every held-out record.
func (s *session) judge(ctx context.Context) (sum cnn.Result, err error) {
	for b, err := range s.held.Epoch(ctx, 0) {
		if err != nil {
			return sum, err
		}
		sum.Add(s.net.Evaluate(s.heldIn.images(b, 0), tensor.As[int64](b.Field(s.c.labels))))
	}
	return sum, nil
}

// rate rises over the first twentieth of all steps and then falls along a cosine.
func (s *session) rate() float64 {
	all := float64(s.c.epochs * s.learn.Batches(0))
	at := (float64(s.steps) + 0.5) / all
	return s.c.rate * min(1, at*20) * (1 + math.Cos(math.Pi*at)) / 2
}
