package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/penstock/penstock/examples/gomlx/gomlxds"
	"github.com/penstock/penstock/loader"
)

func run(c config, out io.Writer) (err error) {
	t, err := openTask(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	backend, err := gobackend.New("")
	if err != nil {
		return err
	}
	defer backend.Finalize()
	store := model.NewStore()
	store.SetParam(model.ParamInitialSeed, int64(c.seed))
	saved, err := openCheckpoints(store, c.checkpoint)
	if err != nil {
		return err
	}
	if c.memory {
		err = teach(c, t, backend, store, saved, newMemory(c, t), out)
	} else {
		err = fed(c, t, backend, store, saved, out)
	}
	if err != nil {
		return err
	}
	right, judged, err := judge(t, backend, store)
	if err == nil {
		fmt.Fprintf(out, "right: %d of %d images that were held out, %.2f %%\n", right, judged,
			100*float64(right)/float64(judged))
	}
	return err
}

// fed trains the network with the batches that the loader reads.
func fed(c config, t *task, backend compute.Backend, store *model.Store, saved *checkpoints, out io.Writer) (
	err error) {
	options, err := t.options(c)
	if err != nil {
		return err
	}
	gomlx := gomlxds.Config{Backend: backend, Inputs: []string{t.image.Name}, Labels: []string{t.label.Name},
		Endless: true}
	var ds *gomlxds.Dataset
	if state, ok, failed := saved.state(); failed != nil {
		return failed
	} else if ok {
		fmt.Fprintf(out, "resuming at epoch %d, batch %d\n", state.Epoch, state.Step)
		ds, err = gomlxds.Resume(t.train, options, gomlx, state)
	} else {
		ds, err = gomlxds.New(t.train, options, gomlx)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	began := time.Now()
	if err := teach(c, t, backend, store, saved.of(ds.State), ds, out); err != nil {
		return err
	}
	report(out, ds.Stats(), time.Since(began))
	return nil
}

// report prints the loader's share of the time.
func report(out io.Writer, s gomlxds.Stats, took time.Duration) {
	if s.Batches > 0 {
		fmt.Fprintf(out, "%d steps, %.2f ms each; %.2f %% of the time waiting for batches, which took %.3f ms each to make\n",
			s.Batches, ms(took)/float64(s.Batches), 100*float64(s.Wait)/float64(took), ms(s.Fill)/float64(s.Batches))
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// teach runs the steps that are left.
func teach(c config, t *task, backend compute.Backend, store *model.Store, saved *checkpoints, ds train.Dataset,
	out io.Writer) (err error) {
	trainer := train.NewTrainer(backend, store, newNetwork(t).logits, loss.SparseCategoricalCrossEntropyLogits,
		optimizer.Adam().LearningRate(c.rate).Done(), nil, nil)
	loop := train.NewLoop(trainer)
	curve, err := openCurve(c.curve, loop.LoopStep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, curve.close()) }()
	last := float32(0)
	loop.OnStep("curve", 0, func(_ *train.Loop, metrics []*tensors.Tensor) error {
		last = tensors.ToScalar[float32](metrics[0])
		return curve.add(last)
	})
	// After the curve, so that what is saved is never ahead of it.
	train.EveryNSteps(loop, c.every, "checkpoint", 100, func(*train.Loop, []*tensors.Tensor) error { return saved.save() })
	if _, err := loop.RunToGlobalStep(ds, c.steps); err != nil {
		return err
	}
	fmt.Fprintf(out, "loss of the last batch: %.4f\n", last)
	if c.steps%c.every == 0 {
		return nil // just saved
	}
	return saved.save()
}

// judge counts the held-out images that the network is right about.
func judge(t *task, backend compute.Backend, store *model.Store) (right, judged int, err error) {
	ds, err := gomlxds.New(t.test, loader.Options{BatchSize: 250, Sampler: t.judged}, gomlxds.Config{
		Backend: backend, Inputs: []string{t.image.Name}, Labels: []string{t.label.Name}, Mask: true,
	})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	count, err := model.NewExec(backend, store, newNetwork(t).count)
	if err != nil {
		return 0, 0, err
	}
	for b, err := range ds.Iter() {
		if err != nil {
			return 0, 0, err
		}
		hits, all, err := count.Call2(b.Inputs[0], b.Labels[0], b.Labels[1])
		if err != nil {
			return 0, 0, err
		}
		right += int(tensors.ToScalar[int32](hits))
		judged += int(tensors.ToScalar[int32](all))
		if err := b.Finalize(); err != nil {
			return 0, 0, err
		}
	}
	return right, judged, nil
}
