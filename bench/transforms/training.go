package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

const (
	trained = 1000 // photos, repeated if there are fewer
	batch   = 64
	threads = 2
)

// training compares epochs over photos as they are: RandomResizedCrop(224), a random flip, and normalized float32,
// channels first, in shuffled batches, by two threads. The interpreters are asked in turn which peers they have: not
// all libraries suit one environment.
func (b *bench) training() error {
	s := set{name: "training"}
	for i := range trained {
		s.files = append(s.files, b.sets[0].files[i%len(b.sets[0].files)])
	}
	if err := s.store(filepath.Join(b.dir, s.name)); err != nil {
		return err
	}
	ours, done, err := b.trainer(s)
	if err != nil {
		return err
	}
	defer done()
	list := []measure.Contender{ours}
	for python := range strings.SplitSeq(b.o.pythons, ",") {
		c, a, err := measure.StartPeers(python, b.o.peers, "photos.py", b.dir)
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Println(a.Text)
		for _, w := range a.Ways {
			if !slices.ContainsFunc(list, func(c measure.Contender) bool { return c.Name == w.Text }) {
				list = append(list, measure.Contender{Name: w.Text, Do: c.Doing(w.Name, "")})
			}
		}
	}
	results, err := measure.Rounds(b.o.rounds, trained, trained, list)
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Training", "photo", results)
	rows := [][]string{{"RandomResizedCrop, flip, float32, 2 threads", "photos/s", "us of CPU",
		"vs penstock, by the clock", "by CPU time"}}
	for _, r := range results {
		rows = append(rows, []string{r.Name, fmt.Sprintf("%.0f", 1/r.Median(measure.Wall)), micros(r),
			r.Over(results[0], measure.Wall).String(), r.Over(results[0], measure.CPU).String()})
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// trainer stores the files as preprocess --keep-encoded does, where peers find them too, and returns a Loader's epochs.
func (b *bench) trainer(s set) (c measure.Contender, done func(), err error) {
	field := store.NewRagged("images", tensor.Uint8)
	field.Content = tensor.Image
	path := filepath.Join(b.dir, "dataset")
	if err := measure.Dataset(path, field, len(s.files), func(i int, _ []byte) []byte { return s.files[i] }); err != nil {
		return c, nil, err
	}
	p, err := transforms.Compose(
		transforms.RandomResizedCrop{Size: []int{side}}, transforms.RandomHorizontalFlip{},
		transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: mean, Std: std},
	)
	if err != nil {
		return c, nil, err
	}
	ds, err := mmapds.Open(path)
	if err != nil {
		return c, nil, err
	}
	ld, err := loader.New(ds, loader.Options{
		BatchSize: batch, Sampler: sampler.Shuffle{}, Workers: threads,
		Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p}},
	})
	if err != nil {
		return c, nil, errors.Join(err, ds.Close())
	}
	epoch := 0
	c = measure.Contender{Name: "penstock, 2 workers", Do: measure.Timed(func(int, int) error {
		for _, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil {
				return err
			}
		}
		epoch++
		return nil
	})}
	return c, func() { _ = errors.Join(ld.Close(), ds.Close()) }, nil
}
