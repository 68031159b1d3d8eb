package main

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// task is a dataset of images with labels, and which of its records are for
// training and for judging.
type task struct {
	train, test   *mmapds.Dataset // may be the same
	image, label  store.Field
	order, judged sampler.Sampler // of the records of train and test
}

func openTask(c config) (*task, error) {
	t := &task{order: sampler.Shuffle{}, judged: sampler.Sequential{}}
	var err error
	if t.train, err = mmapds.Open(c.data); err != nil {
		return nil, err
	}
	t.test = t.train
	if c.test == "" {
		t.order, t.judged = sampler.Split{To: 0.9, Inner: sampler.Shuffle{}}, sampler.Split{From: 0.9, To: 1}
	} else if t.test, err = mmapds.Open(c.test); err != nil {
		return nil, errors.Join(err, t.train.Close())
	}
	if err := t.find(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.data, err), t.close())
	}
	return t, nil
}

// find picks the fields.
func (t *task) find() error {
	for _, f := range t.train.Schema().Fields {
		switch {
		case f.DType == tensor.Uint8 && len(f.Shape) == 3 && f.Layout != "":
			t.image = f
		case f.DType == tensor.Int64 && len(f.Shape) == 0 && len(f.Classes) > 1:
			t.label = f
		}
	}
	if t.image.Name == "" || t.label.Name == "" {
		return errors.New("has no uint8 images, or no labels with classes; make a dataset of a folder of images with one " +
			"folder a class: preprocess")
	}
	if h, w := t.size(); h%8 != 0 || w%8 != 0 {
		return fmt.Errorf("has images of %d x %d; this network needs multiples of 8: preprocess --resize 32x32", h, w)
	}
	return nil
}

// size returns height and width of an image.
func (t *task) size() (h, w int) {
	if t.image.Layout == tensor.CHW {
		return t.image.Shape[1], t.image.Shape[2]
	}
	return t.image.Shape[0], t.image.Shape[1]
}

// options are how training records are loaded.
func (t *task) options(c config) (loader.Options, error) {
	o := loader.Options{BatchSize: c.batch, Sampler: t.order, Seed: c.seed, DropLast: true}
	if !c.flip {
		return o, nil
	}
	layout := transforms.HWC
	if t.image.Layout == tensor.CHW {
		layout = transforms.CHW
	}
	p, err := transforms.Compose(transforms.RandomHorizontalFlip{}, transforms.ToLayout{Layout: layout})
	o.Transforms = map[string]loader.Transform{t.image.Name: loader.Images{Pipeline: p, Layout: layout}}
	return o, err
}

func (t *task) close() error {
	err := t.train.Close()
	if t.test != t.train {
		err = errors.Join(err, t.test.Close())
	}
	return err
}
